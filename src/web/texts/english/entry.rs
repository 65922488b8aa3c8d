//! Getting in and out.

use super::Said;

texts! {
    sign_in = "Sign in";
    domains_of(tenant) = "Domains of {tenant}";
    link_signs_in = "This link signs you in, once, to manage your domains.";
    go_on = "Continue";
    operators_sign_in = "Operators’ sign-in";
    operators_token = "Operator’s token";
    not_a_token = "This is not an operator’s token that works. Make one with: nameplate token create --operator";
    not_an_operator = "You manage the domains of one customer? Open this portal from the application instead: its link signs you in.";
    signed_out = "Signed out";
    you_are_signed_out = "You are signed out";
    sign_in_again = "Sign in again";
    come_back = "To come back, open the page of your domains in your application.";
    your_domains = "Your domains";
    running = "Nameplate is running";
    start_lead = "You manage your domains here. Open this page from your application: its link signs you in.";
    to_the_start = "To the start";
    link_ended = "This link has ended";
    link_taken_back = "This link was taken back";
    link_nowhere = "This link leads nowhere";
    link_used = "This link was used already";
    hand_off_ended = "It was made for a limited time, which is over.";
    hand_off_revoked = "Whoever sent it to you does not share these records any more.";
    hand_off_unknown = "It may have been cut off on its way to you.";
    hand_off_todo = "Ask whoever sent it to you for a new one: making it takes them a moment.";
    portal_used = "Each link signs in once, so that nobody can use it after you.";
    portal_ended = "Links that sign in are good for a short time only.";
    portal_revoked = "It does not sign in any more.";
    portal_unknown = "It may have been cut off when it was copied.";
    portal_todo = "Go back to your application and open the page of your domains from there: it makes a fresh link.";
    back_title = "Back from your DNS provider";
    back_lead = "You can close this page. The one you came from shows by itself what is seen of the records.";
}
