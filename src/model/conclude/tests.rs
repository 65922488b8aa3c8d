//! Tables over situations.
