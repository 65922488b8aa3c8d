//! The grammar of the command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use super::backup::BackupArgs;
use super::bench::BenchCommand;
use super::certificate::CertificateCommand;
use super::doctor::DoctorArgs;
use super::issuer::IssuerCommand;
use super::links::{HandOffLinkArgs, PortalLinkArgs};
use super::manual::{CompletionsArgs, ManArgs};
use super::restore::{RestoreArgs, RestoredArgs};
use super::tenant_remove::RemoveArgs;

/// A domain of their own for every customer of a SaaS.
#[derive(Parser)]
#[command(name = "nameplate", version, about, disable_help_subcommand = true)]
pub(super) struct Cli {
    /// Configuration file [default: nameplate.toml, where there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print documents instead of tables
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Serve API, pages and the feed, and do the work
    Serve,
    /// Do the work alone, beside a `serve` on the same database
    Work,
    /// Terminate TLS for visitors; with a subcommand, administer the edges
    Edge(EdgeArgs),
    /// Start everything on this machine, to play with or to check it
    Sandbox(SandboxArgs),
    /// Bring the database to this version's schema
    Migrate,
    /// Add, list and remove tenants
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Import the certificate of the platform's own hosts
    #[command(subcommand)]
    Certificate(CertificateCommand),
    /// Add, list and test CAs, and look after our accounts there
    #[command(subcommand)]
    Issuer(IssuerCommand),
    /// Replace certificates out of turn
    #[command(subcommand)]
    Reissue(super::reissue::ReissueCommand),
    /// Make tokens and take them back
    #[command(subcommand)]
    Token(TokenCommand),
    /// Claim, show, check and remove domains, over the API
    Domain(DomainArgs),
    /// Import a file of names, over the API
    Import(super::bulk::ImportArgs),
    /// Follow, hold and give up imports, take away their verdicts and records, over the API
    Imports(super::bulk::ImportsArgs),
    /// Make a link that signs a tenant's admin in, once, over the API
    PortalLink(PortalLinkArgs),
    /// Make a link that shows one domain's records to whoever owns its DNS, over the API
    HandOffLink(HandOffLinkArgs),
    /// Manage the places that events are sent to, over the API
    Webhook(super::webhook::WebhookArgs),
    /// List what somebody should know of now, over the API
    Alerts(super::webhook::AlertsArgs),
    /// What DNS providers need to know to set records themselves
    #[command(subcommand)]
    DomainConnect(super::domain_connect::DomainConnectCommand),
    /// Tell the whole story of one hostname, and what happens next
    Explain(super::explain::ExplainArgs),
    /// Copy the database while it is in use
    Backup(BackupArgs),
    /// Put a copy back where no database is yet, and tell it that it is one
    Restore(RestoreArgs),
    /// Tell a database that was put back by other means that it is one, before anything runs on it, or that all is back
    Restored(RestoredArgs),
    /// Look at this installation: what is wrong and what to do
    Doctor(DoctorArgs),
    /// Run the product on virtual time, to plan capacity
    #[command(subcommand)]
    Simulate(super::simulate::SimulateCommand),
    /// Measure what this machine can do
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Check the configuration, or describe its keys
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print what a shell needs to complete this command line
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
}

#[derive(Args)]
pub(super) struct EdgeArgs {
    #[command(subcommand)]
    pub command: Option<EdgeCommand>,
}

#[derive(Subcommand)]
pub(super) enum EdgeCommand {
    /// List all edges
    List,
    /// Count an edge no more, before it is taken down
    Drain {
        /// Its name or id
        edge: String,
    },
    /// Count a drained edge again
    Undrain {
        /// Its name or id
        edge: String,
    },
    /// Shut an edge out for ever, and change the key that certificates travel under
    Revoke {
        /// Its name or id
        edge: String,
    },
}

#[derive(Subcommand)]
pub(super) enum TenantCommand {
    /// Add a tenant
    Add {
        /// Label of its canonical host; never reused
        slug: String,
        /// What people call it [default: the slug]
        #[arg(long)]
        name: Option<String>,
    },
    /// List all tenants
    List,
    /// Take a tenant off board, for ever
    Remove(RemoveArgs),
}

#[derive(Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token; it is shown this once
    Create(NewToken),
    /// List tokens, never their secrets
    List {
        /// Of one tenant only, by slug or id
        #[arg(long, value_name = "SLUG")]
        tenant: Option<String>,
    },
    /// Take a token back, at once
    Revoke {
        /// Its id, tok_…
        id: String,
    },
}

#[derive(Args)]
#[command(group(ArgGroup::new("whose").required(true).args(["operator", "tenant", "edge"])))]
pub(super) struct NewToken {
    /// For the platform: sees and does everything
    #[arg(long)]
    pub operator: bool,
    /// For one tenant, by slug or id: sees and does what is its own
    #[arg(long, value_name = "SLUG")]
    pub tenant: Option<String>,
    /// For one edge to enrol with, once
    #[arg(long)]
    pub edge: bool,
    /// What to call it
    #[arg(long, default_value = "command line")]
    pub label: String,
    /// After which time it ends, such as 90d [default: never; 24h with --edge]
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
}

#[derive(Args)]
pub(super) struct DomainArgs {
    /// Where the API is [default: NAMEPLATE_SERVER, else http://127.0.0.1:8080]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// API token [default: NAMEPLATE_TOKEN, which other users of the machine cannot see]
    #[arg(long, global = true)]
    pub token: Option<String>,
    #[command(subcommand)]
    pub command: DomainCommand,
}

#[derive(Subcommand)]
pub(super) enum DomainCommand {
    /// Claim a hostname
    Add {
        /// The hostname
        hostname: String,
        /// For which tenant, by slug or id; an operator's token needs it
        #[arg(long)]
        tenant: Option<String>,
        /// Also claim its other half, www or the bare name, and link both
        #[arg(long)]
        with_www: bool,
        /// Which of the two the visitors of the other are sent on to
        #[arg(long, value_name = "HOSTNAME", requires = "with_www")]
        redirect_to: Option<String>,
    },
    /// Send visitors on to the other half, www or the bare name
    Redirect {
        /// Id or hostname
        domain: String,
        /// Keep them here from now on
        #[arg(long)]
        off: bool,
    },
    /// List domains
    List {
        /// Of one tenant only, by slug or id
        #[arg(long)]
        tenant: Option<String>,
        /// With this hostname only
        #[arg(long)]
        hostname: Option<String>,
        /// In this state only, such as live
        #[arg(long)]
        claim: Option<String>,
    },
    /// Show what to publish, what is seen and what comes next
    Show {
        /// Id or hostname
        domain: String,
    },
    /// Look at DNS at once
    Check {
        /// Id or hostname
        domain: String,
    },
    /// Let a domain go
    Remove {
        /// Id or hostname
        domain: String,
    },
    /// Bring back a domain that was removed, within 7 days and while its records are in place
    Undo {
        /// Id or hostname
        domain: String,
    },
    /// End what keeps a name back that was let go of; for operators
    EndRelease {
        /// Id or hostname
        domain: String,
        /// Why, for the record
        #[arg(long)]
        reason: String,
    },
    /// List names that were let go of and still lead here; for operators
    LeftBehind,
}

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Print every problem of the configuration, or that there is none
    Check {
        /// Also say what this role still needs
        #[arg(long)]
        role: Option<RoleName>,
    },
    /// Print the reference of all keys, as docs/configuration.md
    Reference,
}

#[derive(Args)]
pub(super) struct SandboxArgs {
    /// Keep its files here [default: a directory that goes with it]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Walk the whole way by itself, from claim to HTTPS; exit 1 at the first step that fails
    #[arg(long)]
    pub check: bool,
    /// Which CA issues; pebble is Debian's package of that name
    #[arg(long, value_name = "CA", default_value = "test")]
    pub ca: CaName,
    /// With --check: measure so many domains more
    #[arg(long, value_name = "N", requires = "check", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum CaName {
    Test,
    Pebble,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    Serve,
    Work,
    Edge,
}
