//! Situations of our own, in the corpus's form and through the same harness: what its cases leave open.

use crate::dns_cases::run_file;
use crate::support::dns_corpus::MORE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_situations() {
    run_file(MORE).await;
}
