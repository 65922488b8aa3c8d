//! What people do, done by a real Chromium: the whole way, on every size of screen, with and without scripts.

use std::net::{Ipv4Addr, SocketAddr};

use nameplate::env::Env;
use nameplate::sandbox::issuer::Choice;
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::world::{World, WorldSettings};
use serde_json::json;

use crate::support::browser::{Browser, DESKTOP, PHONE, Screen, TAB};

const HOST: &str = "support.acme.test";
const SERVED: &str = "Visitors are served";

async fn sandbox() -> World {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let settings = WorldSettings { data: None, ca: Choice::Test, ports: Ports::free().await.unwrap() };
    let world = World::start(settings, &Env::real()).await.unwrap();
    world.api().unwrap().add_tenant("acme").await.unwrap();
    world
}

fn edge(world: &World) -> (&'static str, SocketAddr) {
    (HOST, SocketAddr::from((Ipv4Addr::LOCALHOST, world.https_port())))
}

/// A browser that trusts the sandbox's CA, and in whose DNS the tenant's name leads to the edge.
async fn browser(world: &World, screen: Screen) -> Browser {
    Browser::open(screen, &[&world.roots_file], &[edge(world)]).await
}

/// Signs in as the tenant's admin.
async fn signed_in(world: &World, browser: &Browser) {
    browser.go(&world.api().unwrap().portal_link("acme").await.unwrap()).await;
    browser.press("Continue").await;
    browser.until_at("/domains").await;
}

/// The page has no fault that axe-core knows, none of its own in the console, and fits the screen.
async fn is_sound(browser: &Browser, name: &str) {
    browser.picture(name).await;
    assert_eq!(browser.faults().await, Vec::<String>::new(), "{name}: {}", browser.title().await);
    assert_eq!(browser.complaints().await, Vec::<String>::new(), "{name}");
    assert!(!browser.scrolls_sideways().await, "{name} is wider than the screen");
}

/// Copies the records from the domain's page into the pretend provider's form, as somebody would who has both open; comes back.
async fn paste_records(world: &World, browser: &Browser) {
    let page = browser.url().await;
    let mut records = Vec::new();
    for n in 1..=2 {
        let kind = browser.words(&format!("//*[@id='record-{n}']//*[@class='kind']")).await;
        let host = browser.words(&format!("//*[@id='copy-{n}-host']")).await;
        let value = browser.words(&format!("//*[@id='copy-{n}-value']")).await;
        records.push((kind, host, value));
    }
    browser.go(&format!("http://{}/", world.outside.provider)).await;
    for (kind, host, value) in records {
        browser.fill("Name", &host).await;
        browser.choose("Type", &kind).await;
        browser.fill("Value", &value).await;
        browser.press("Add record").await;
        browser.shows(&value).await;
    }
    browser.go(&page).await;
}

/// From the portal's link to the tenant's own site, and out again.
async fn the_whole_way(screen: Screen, size: &str) {
    let world = sandbox().await;
    let tab = browser(&world, screen).await;
    let picture = |page: &str| format!("{size}-{page}");

    tab.go(&world.api().unwrap().portal_link("acme").await.unwrap()).await;
    is_sound(&tab, &picture("1-link")).await;
    tab.press("Continue").await;
    tab.shows("No domains yet").await;
    is_sound(&tab, &picture("2-empty")).await;

    tab.press("Add the first one").await;
    tab.fill("Names", &format!("https://{HOST}/ not_a_name")).await;
    tab.press("Add").await;
    tab.shows("1 not added").await;
    is_sound(&tab, &picture("3-added")).await;
    tab.press(HOST).await;
    tab.shows("Records to publish").await;
    is_sound(&tab, &picture("4-records")).await;

    paste_records(&world, &tab).await;
    tab.press("Check now").await;
    // With scripts the page follows by itself; without, its reader loads it again.
    if screen.scripts {
        tab.shows(SERVED).await;
    } else {
        tab.shows_after_reloads(SERVED).await;
    }
    is_sound(&tab, &picture("5-served")).await;

    tab.go(&format!("https://{HOST}/")).await;
    tab.shows("Hello from acme").await;
    is_sound(&tab, &picture("6-site")).await;

    tab.go(&format!("{}/domains", world.url())).await;
    tab.shows(HOST).await;
    is_sound(&tab, &picture("7-list")).await;
    tab.press(HOST).await;
    tab.press("Remove this domain…").await;
    tab.shows("7 days").await;
    is_sound(&tab, &picture("8-remove")).await;
    tab.press(&format!("Remove {HOST}")).await;
    tab.shows("On its way out").await;
    is_sound(&tab, &picture("9-leaving")).await;
    tab.press("Sign out").await;
    tab.shows("You are signed out").await;
    tab.go(&format!("{}/domains", world.url())).await;
    tab.shows("Please sign in").await;
    is_sound(&tab, &picture("10-signed-out")).await;
    world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_portal_link_to_a_green_domain_on_a_desktop() {
    the_whole_way(DESKTOP, "desktop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_portal_link_to_a_green_domain_on_a_phone_without_scripts() {
    the_whole_way(PHONE.without_scripts(), "phone-plain").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_portal_link_to_a_green_domain_on_a_dark_phone() {
    the_whole_way(PHONE.dark(), "phone-dark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handed_off_page_needs_no_account_and_is_live() {
    let world = sandbox().await;
    let api = world.api().unwrap();
    let domain = api.claim("acme", HOST).await.unwrap();
    let tab = browser(&world, PHONE).await;
    signed_in(&world, &tab).await;
    tab.go(&format!("{}/domains/{}", world.url(), domain.id)).await;
    tab.press("Make a link to hand off").await;
    let link = tab.words("//*[@id='link']").await;
    is_sound(&tab, "phone-handing-off").await;
    tab.press("Sign out").await;
    tab.shows("You are signed out").await;
    tab.go(&link).await;
    tab.shows("Records to publish").await;
    is_sound(&tab, "phone-hand-off").await;
    for record in &domain.records {
        world.outside.zones.add(&record.zone_line()).unwrap();
    }
    api.check(&domain.id).await.unwrap();
    tab.shows(SERVED).await;
    assert!(!tab.text().await.contains("Remove"), "it changes nothing");
    world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_is_marked_and_a_light_stays_as_its_reader_left_it() {
    let world = sandbox().await;
    let api = world.api().unwrap();
    let zones = &world.outside.zones;
    let wrong = format!("{HOST}. 60 IN CNAME shops.acme.test.");
    zones.add(&wrong).unwrap();
    zones.add("shops.acme.test. 60 IN A 192.0.2.7").unwrap();
    let domain = api.claim("acme", HOST).await.unwrap();
    let page = format!("{}/domains/{}", world.url(), domain.id);
    for (size, screen) in [("phone", PHONE), ("desktop-dark", DESKTOP.dark()), ("desktop", DESKTOP)] {
        let tab = browser(&world, screen).await;
        signed_in(&world, &tab).await;
        tab.go(&page).await;
        tab.shows("Needs a change").await;
        let open = "return [...document.querySelectorAll('details[open]')].map((d) => d.id).join()";
        assert_eq!(tab.script(open).await, json!("light-routing"), "what its reader has to change is open");
        let marked =
            tab.script("return [...document.querySelectorAll('#light-routing li mark')].map((m) => m.textContent).join()");
        assert!(marked.await.as_str().unwrap().contains("shops"), "what differs is marked");
        is_sound(&tab, &format!("{size}-lights")).await;
        if size != "desktop" {
            continue;
        }
        // By keyboard: one is opened, the other closed; then the page follows by itself.
        for id in ["light-routing-name", "light-ownership-name"] {
            tab.script(&format!("document.getElementById('{id}').focus()")).await;
            tab.keys("\u{E007}").await;
        }
        assert_eq!(tab.script(open).await, json!("light-ownership"));
        zones.remove(&wrong).unwrap();
        for record in &domain.records {
            zones.add(&record.zone_line()).unwrap();
        }
        api.check(&domain.id).await.unwrap();
        tab.shows(SERVED).await;
        assert_eq!(tab.script(open).await, json!("light-ownership"));
        assert_eq!(tab.script("return document.activeElement.id").await, json!("light-ownership-name"));
        tab.script("for (const light of document.querySelectorAll('details')) light.open = true").await;
        is_sound(&tab, &format!("{size}-lights-open")).await;
    }
    world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_the_fleet_on_every_screen() {
    let world = sandbox().await;
    let api = world.api().unwrap();
    let served = api.claim("acme", HOST).await.unwrap();
    api.claim("acme", "shop.acme.test").await.unwrap();
    for record in &served.records {
        world.outside.zones.add(&record.zone_line()).unwrap();
    }
    api.check(&served.id).await.unwrap();
    for (size, screen) in [("desktop", DESKTOP), ("desktop-dark", DESKTOP.dark()), ("phone-plain", PHONE.without_scripts())]
    {
        let tab = browser(&world, screen).await;
        tab.go(&format!("{}/operator", world.url())).await;
        tab.shows("Please sign in").await;
        tab.go(&format!("{}/operator/sign-in", world.url())).await;
        is_sound(&tab, &format!("{size}-sign-in")).await;
        tab.fill("Operator’s token", "npo_wrong").await;
        tab.press("Sign in").await;
        tab.shows("not an operator").await;
        tab.fill("Operator’s token", world.operator.expose_str().unwrap()).await;
        tab.press("Sign in").await;
        tab.until_at("/operator").await;
        for page in ["", "/domains", "/tenants", "/queue", "/edges", "/expiry"] {
            tab.go(&format!("{}/operator{page}", world.url())).await;
            is_sound(&tab, &format!("{size}-operator{}", page.replace('/', "-"))).await;
        }
        tab.go(&format!("{}/operator/domains/{}", world.url(), served.id)).await;
        tab.shows(HOST).await;
        is_sound(&tab, &format!("{size}-operator-domain")).await;
        for page in ["/api/docs", "/api/docs/documents", "/api/docs/problems"] {
            tab.go(&format!("{}{page}", world.url())).await;
            is_sound(&tab, &format!("{size}{}", page.replace('/', "-"))).await;
        }
    }
    world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyboard_alone_gets_to_the_content_and_through_the_form() {
    let world = sandbox().await;
    let tab = browser(&world, DESKTOP).await;
    signed_in(&world, &tab).await;
    tab.go(&format!("{}/domains/add", world.url())).await;
    tab.keys(TAB).await;
    assert_eq!(tab.script("return document.activeElement.textContent").await, json!("Skip to the content"));
    assert_eq!(tab.script("return getComputedStyle(document.activeElement).outlineStyle !== 'none'").await, json!(true));
    let mut steps = 0;
    while tab.script("return document.activeElement.id").await != json!("names") {
        tab.keys(TAB).await;
        steps += 1;
        assert!(steps < 20, "the field is not reached by the keyboard");
    }
    tab.keys(&format!("{HOST}{TAB}\u{E007}")).await;
    tab.shows("Records to publish").await;
    world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_and_the_application_are_sound_pages() {
    let world = sandbox().await;
    for (size, screen) in [("phone", PHONE), ("desktop-dark", DESKTOP.dark()), ("desktop-plain", DESKTOP.without_scripts())]
    {
        let tab = browser(&world, screen).await;
        for (page, at) in [("provider", world.outside.provider), ("origin", world.outside.origin)] {
            tab.go(&format!("http://{at}/")).await;
            is_sound(&tab, &format!("{size}-{page}")).await;
        }
    }
    world.drain().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_trusts_other_cas_is_warned() {
    let world = sandbox().await;
    let api = world.api().unwrap();
    let domain = api.claim("acme", HOST).await.unwrap();
    for record in &domain.records {
        world.outside.zones.add(&record.zone_line()).unwrap();
    }
    let known = browser(&world, DESKTOP).await;
    signed_in(&world, &known).await;
    known.go(&format!("{}/domains/{}", world.url(), domain.id)).await;
    api.check(&domain.id).await.unwrap();
    known.shows(SERVED).await;
    let stranger = Browser::open(DESKTOP, &[], &[edge(&world)]).await;
    // chromedriver may answer with an error, or show the warning page as any other.
    let refused = stranger.try_go(&format!("https://{HOST}/")).await.err().unwrap_or_default();
    let said = refused + &stranger.text().await;
    assert!(said.contains("ERR_CERT_AUTHORITY_INVALID") || said.contains("insecure certificate"), "{said}");
    assert!(!said.contains("Hello from"), "{said}");
    world.drain().await.unwrap();
}
