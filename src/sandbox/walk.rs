//! The way of one domain, from claim to a visitor's page, over the public API.

use std::time::Duration;

use super::api::{Api, ApiError};
use super::outside::PLATFORM_ZONE;
use super::visitor::Visit;
use super::world::World;
use crate::app::show::{CheckView, DomainView};
use crate::model::claim::Claim;
use crate::model::evidence::{Check, Verdict};
use crate::model::moment::Moment;
use crate::telemetry::Chain;

/// The tenant of every walk.
pub const TENANT: &str = "acme";

/// Between two looks at something that is under way.
const PAUSE: Duration = Duration::from_millis(20);
/// How long DNS may take to be seen: "check now" may be asked for twice in it.
const DNS: Duration = Duration::from_secs(20);
/// How long the certificate may take, with a CA that refuses nonces.
const CERTIFICATE: Duration = Duration::from_secs(90);
/// How long it may take from the certificate to the visitor.
const SERVED: Duration = Duration::from_secs(30);

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {seen}")]
pub struct Failed {
    /// Which step.
    pub step: String,
    /// What was seen instead.
    pub seen: String,
}

impl Failed {
    /// A step, and what was seen.
    pub fn new(step: impl Into<String>, seen: impl Into<String>) -> Failed {
        Failed { step: step.into(), seen: seen.into() }
    }

    fn because(step: &str, error: &(dyn std::error::Error + 'static)) -> Failed {
        Failed::new(step, Chain(error).to_string())
    }
}

/// Somebody who walks.
pub struct Walk<'w> {
    world: &'w World,
    api: Api,
}

impl<'w> Walk<'w> {
    /// In this world.
    pub fn new(world: &'w World) -> Result<Walk<'w>, Failed> {
        let api = world.api().map_err(|error| Failed::because("start", &error))?;
        Ok(Walk { world, api })
    }

    fn now(&self) -> Moment {
        self.world.env().now()
    }

    /// The tenant is there.
    pub async fn tenant(&self) -> Result<(), Failed> {
        self.api.add_tenant(TENANT).await.map(|_| ()).map_err(|error| Failed::because("add the tenant", &error))
    }

    /// A link into the portal.
    pub async fn portal_link(&self) -> Result<String, Failed> {
        self.api.portal_link(TENANT).await.map_err(|error| Failed::because("make a portal link", &error))
    }

    /// The name is claimed.
    pub async fn claim(&self, hostname: &str) -> Result<DomainView, Failed> {
        self.api.claim(TENANT, hostname).await.map_err(|error| Failed::because("claim the name", &error))
    }

    /// The first look was made, so that the next one is the one asked for.
    pub async fn first_look(&self, domain: &DomainView) -> Result<(), Failed> {
        let step = "look for the first time";
        self.until(step, domain, DNS, |view| Ok((!view.checks.is_empty()).then_some(()))).await.map(|_| ())
    }

    /// Records of these types are published as the tenant would at its provider.
    pub fn publish(&self, domain: &DomainView, kinds: &[&str]) -> Result<(), Failed> {
        for record in domain.records.iter().filter(|record| kinds.contains(&record.kind.as_str())) {
            let added = self.world.outside.zones.add(&record.zone_line());
            added.map_err(|error| Failed::because("publish the records", &error))?;
        }
        Ok(())
    }

    /// A look is asked for; when it was.
    pub async fn check_now(&self, domain: &DomainView) -> Result<Moment, Failed> {
        let step = "check now";
        let deadline = self.now() + DNS;
        loop {
            let asked = self.now();
            match self.api.check(&domain.id).await {
                Ok(true) => return Ok(asked),
                Ok(false) if self.now() < deadline => self.world.env().sleep(PAUSE).await,
                Ok(false) => return Err(Failed::new(step, "the API keeps saying that a check was just made")),
                Err(error) => return Err(Failed::because(step, &error)),
            }
        }
    }

    /// All checks pass and the name is queued. A check that fails, and fails again when asked once more, ends the walk.
    pub async fn proven(&self, domain: &DomainView, asked: Moment) -> Result<(), Failed> {
        let (mut asked, mut again) = (asked, false);
        let deadline = self.now() + DNS;
        loop {
            let view = self.view(domain, "see the records").await?;
            if view.claim != Claim::AwaitingDns {
                return Ok(());
            }
            let failing = view.checks.iter().find(|check| check.verdict == Verdict::Fail && check.looked_at > asked);
            match failing {
                Some(check) if again => return Err(failed_check(check)),
                Some(_) => {
                    asked = self.check_now(domain).await?;
                    again = true;
                }
                None if self.now() >= deadline => {
                    let open = view.checks.iter().find(|check| check.verdict != Verdict::Pass);
                    return Err(open.map_or_else(|| Failed::new("see the records", view.sentence), failed_check));
                }
                None => self.world.env().sleep(PAUSE).await,
            }
        }
    }

    /// The certificate is stored: the claim is live.
    pub async fn certified(&self, domain: &DomainView) -> Result<(), Failed> {
        let live = |view: &DomainView| match view.claim {
            Claim::Live => Ok(Some(())),
            Claim::Queued => Ok(None),
            other => Err(format!("the claim fell back to {other}: {}", view.sentence)),
        };
        self.until("get the certificate", domain, CERTIFICATE, live).await.map(|_| ())
    }

    /// Every counted edge has it and the public name answers with it.
    pub async fn active(&self, domain: &DomainView) -> Result<DomainView, Failed> {
        self.until("be active", domain, SERVED, |view| Ok(view.active.then_some(()))).await
    }

    /// A visitor gets the tenant's page, trusting the CA's root alone.
    pub async fn visited(&self, hostname: &str) -> Result<(), Failed> {
        let step = "visit over HTTPS";
        let visit = self.visit(hostname)?;
        let asked = visit.pay().await.map_err(|error| Failed::because(step, &error))?;
        let right =
            asked.tenant.as_deref() == Some(TENANT) && asked.host.as_deref().is_some_and(|h| h.starts_with(hostname));
        if right { Ok(()) } else { Err(Failed::new(step, format!("the origin was asked for {asked:?}"))) }
    }

    /// Visits until one succeeds.
    pub async fn first_visit(&self, hostname: &str) -> Result<(), Failed> {
        let visit = self.visit(hostname)?;
        let deadline = self.now() + CERTIFICATE;
        loop {
            match visit.pay().await {
                Ok(_) => return Ok(()),
                Err(error) if self.now() >= deadline => return Err(Failed::because("visit over HTTPS", &error)),
                Err(_) => self.world.env().sleep(PAUSE).await,
            }
        }
    }

    fn visit(&self, hostname: &str) -> Result<Visit, Failed> {
        self.world.visitor().of(hostname).map_err(|error| Failed::because("visit over HTTPS", &error))
    }

    async fn view(&self, domain: &DomainView, step: &str) -> Result<DomainView, Failed> {
        self.api.domain(&domain.id).await.map_err(|error: ApiError| Failed::because(step, &error))
    }

    async fn until(
        &self,
        step: &str,
        domain: &DomainView,
        patience: Duration,
        done: impl Fn(&DomainView) -> Result<Option<()>, String>,
    ) -> Result<DomainView, Failed> {
        let deadline = self.now() + patience;
        loop {
            let view = self.view(domain, step).await?;
            match done(&view) {
                Ok(Some(())) => return Ok(view),
                Err(seen) => return Err(Failed::new(step, seen)),
                Ok(None) if self.now() >= deadline => {
                    let order = view.order.as_ref().map_or_else(String::new, |order| {
                        let problem = order.problem.as_ref().map(|p| format!(", {p}")).unwrap_or_default();
                        format!(" (order {}{problem})", order.state)
                    });
                    let seen = format!("not within {} s; {}{order}", patience.as_secs(), view.sentence);
                    return Err(Failed::new(step, seen));
                }
                Ok(None) => self.world.env().sleep(PAUSE).await,
            }
        }
    }
}

fn failed_check(check: &CheckView) -> Failed {
    let name = match check.check {
        Check::Ownership => "ownership",
        Check::Routing => "routing",
        Check::Caa => "CAA",
        Check::Delegation => "delegation",
        Check::Holding => "holding",
        Check::Preflight => "preflight",
    };
    let seen = format!("{} ({}), seen: {}", check.sentence, check.code, check.observed.join("; "));
    Failed::new(format!("pass the {name} check"), seen)
}

/// Where a tenant's names lead.
pub fn target() -> String {
    format!("{TENANT}.{PLATFORM_ZONE}")
}
