//! Results for people: takes a result document, returns [`text`] for a terminal and files, or a page of [`html`]. Nothing is measured,
//! chosen or printed here, and a page says what a terminal says.

pub mod html;
pub mod text;
