//! The example is a program that works.

#[path = "../examples/server.rs"]
mod server;

#[test]
fn the_example_saves_every_page_of_both_clients() {
    server::main();
}
