//! The comparison with other ACME clients runs: a script that nobody runs soon asks for what the API no longer says.

use std::process::Command;

#[test]
fn the_comparison_measures_what_a_few_certificates_cost() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/compare-issuance");
    let done = Command::new(script)
        .args(["--names", "3", "--program", env!("CARGO_BIN_EXE_nameplate"), "nameplate"])
        .output()
        .expect("scripts/compare-issuance can be run; it needs Python");
    let (said, why) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}{why}");
    let row: Vec<&str> = said.lines().find(|l| l.starts_with("nameplate")).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row.get(1), Some(&"3"), "certificates: {said}");
    let each: f64 = row.get(4).and_then(|ms| ms.parse().ok()).unwrap_or_default();
    assert!(each > 0.0, "CPU ms each: {said}");
}
