//! The configuration of a sandbox's control plane and edge: a text like any operator's, so that the command line can be
//! used beside a running sandbox with the same file.

use std::net::SocketAddr;
use std::path::Path;

use super::outside::{Outside, PLATFORM_ZONE};

/// Where the parts are that a configuration names.
pub struct Places<'a> {
    /// `sqlite:…` or `postgres://…`.
    pub database: String,
    /// The file of the master key.
    pub master_key: &'a Path,
    /// The roots of the CA's own server, in PEM.
    pub ca_roots: &'a Path,
    /// The CA's directory.
    pub directory: String,
    /// API and pages.
    pub web: SocketAddr,
    /// The feed.
    pub feed: SocketAddr,
    /// The edge's port 80.
    pub plain: SocketAddr,
    /// The edge's port 443.
    pub tls: SocketAddr,
    /// Where the edge keeps its state.
    pub edge_state: &'a Path,
}

/// The configuration, as TOML.
pub fn text(places: &Places<'_>, outside: &Outside) -> String {
    let list = |items: Vec<String>| toml::Value::from(items).to_string();
    let resolvers = list(outside.resolvers.iter().map(SocketAddr::to_string).collect());
    let servers = list(outside.servers.iter().map(|(address, at)| format!("{address}={at}")).collect());
    let text = |text: &str| toml::Value::from(text).to_string();
    let path = |path: &Path| text(&path.display().to_string());
    format!(
        "# Written by `nameplate sandbox` at its start. Everything in it is on this machine.\n\
         [server]\nlisten = {web}\npublic_url = {web_url}\n\n\
         # Whoever tries it out, by hand or by machine, is never told to wait.\n\
         [api]\nrequests_per_minute = 1000000\nfailures_per_minute = 1000000\n\n\
         [portal]\nlink_lifetime = \"12h\"\nreturn_urls = [{origin_url}]\n\n\
         [database]\nurl = {database}\n\n\
         [vault]\nmaster_key_file = {master_key}\n\n\
         [names]\nextra_suffixes = [\"test\"]\n\n\
         [routing]\ncanonical_suffix = {zone}\napex_addresses = [\"127.0.0.1\"]\n\n\
         [dns]\nresolvers = {resolvers}\nservers = {servers}\ntimeout = \"2s\"\n\n\
         [issuers.sandbox]\ndirectory = {directory}\nroots_file = {ca_roots}\n\
         # Its CA counts orders at most; whoever breaks things on purpose is not told to wait.\n\
         domain_certificates_burst = 0\nname_certificates_burst = 0\nfailures_burst = 0\nfailures_in_a_row_burst = 0\n\n\
         [reach]\nhttp_port = {plain_port}\nhttps_port = {tls_port}\nallow_loopback = true\n\n\
         [mail]\nserver = {mail}\nport = {mail_port}\ntls = \"none\"\nfrom = \"domains@{PLATFORM_ZONE}\"\n\
         operators = [\"operator@{PLATFORM_ZONE}\"]\nevery = \"10s\"\n\n\
         [feed]\nlisten = {feed}\nurl = {feed_url}\n\n\
         [edge]\nname = \"sandbox\"\nstate_dir = {edge_state}\nplain_listen = {plain}\ntls_listen = {tls}\n\
         upstream = {origin}\nexternal_port = {tls_port}\n",
        web = text(&places.web.to_string()),
        web_url = text(&format!("http://{}", places.web)),
        origin_url = text(&format!("http://{}/", outside.origin)),
        database = text(&places.database),
        master_key = path(places.master_key),
        zone = text(PLATFORM_ZONE),
        directory = text(&places.directory),
        ca_roots = path(places.ca_roots),
        mail = text(&outside.mail.ip().to_string()),
        mail_port = outside.mail.port(),
        plain_port = places.plain.port(),
        tls_port = places.tls.port(),
        feed = text(&places.feed.to_string()),
        feed_url = text(&format!("https://{}", places.feed)),
        edge_state = path(places.edge_state),
        plain = text(&places.plain.to_string()),
        tls = text(&places.tls.to_string()),
        origin = text(&format!("http://{}", outside.origin)),
    )
}
