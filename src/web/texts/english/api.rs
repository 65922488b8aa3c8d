//! The pages of the API's documentation, around what is read from the description itself.

use super::Said;

texts! {
    the_api = "The API";
    resources = "Resources";
    the_operations = "The operations";
    the_documents = "The documents";
    the_problems = "The problems";
    for_programs() = "`openapi.json` (OpenAPI 3.1), the same for programs";
    every_operation = "Every operation";
    every_lead = "A list is a page of items and the link to the next, or null. These answers are not repeated below.";
    parameters = "Parameters";
    needed(kind) = "{kind}, needed";
    body(name) = "Body: {name}";
    answers = "Answers";
    documents_title = "Documents of the API";
    documents_of = "The documents of the API";
    problems_title = "Problems of the API";
    problems_of = "The problems of the API";
    problems_lead() = "Every refusal is `application/problem+json` with one of these codes; its type is `urn:nameplate:problem:` and the code.";
}
