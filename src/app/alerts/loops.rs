//! Loops that have not gone round for long, in any process: they hang, or fail each time.

use super::AlertSettings;
use crate::app::{App, AppError};
use crate::model::alert::loops::{LEAST, LOOPS};
use crate::store::{alerts, pulse};

/// The kind of the alert; its subject is the loop.
pub(super) const SILENT: &str = "loop_silent";

/// Those that are silent, with what is said of them.
pub(super) async fn silent(app: &App, settings: &AlertSettings) -> Result<Vec<(&'static str, String)>, AppError> {
    let (now, pulses) = (app.env.now(), pulse::all(&app.store).await?);
    let mut silent = Vec::new();
    for one in LOOPS {
        // One that nobody has heard of is run by no process.
        let Some((_, at)) = pulses.iter().find(|(name, _)| name == one.name) else { continue };
        if now.since(*at) >= one.silence() {
            let minutes = now.since(*at).as_secs() / 60;
            silent.push((
                one.name,
                format!("the loop {} has not done its work for {minutes} minutes: {}", one.name, one.without),
            ));
        }
    }
    // Where all processes were down, each loop is given the time to go round before it counts as silent; what was silent before
    // stays so until it does.
    if !silent.is_empty() && now.since(settings.watching_since(now)) < LEAST {
        let open = alerts::open_of_platform(&app.store).await?;
        silent.retain(|(name, _)| open.iter().any(|alert| alert.kind == SILENT && alert.subject == *name));
    }
    Ok(silent)
}
