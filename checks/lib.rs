//! Only tests: the protocols between threads of the block layer under model checkers.
