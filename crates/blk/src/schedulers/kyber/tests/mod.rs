//! kyber, tested.
