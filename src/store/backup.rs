//! A copy of a SQLite database, made while it is in use.

use std::path::Path;

use super::{Store, StoreError, StoreResult};

impl Store {
    /// Writes a whole, compact copy to a file that does not exist yet. False for PostgreSQL, which brings its own tools.
    pub async fn copy_to(&self, file: &Path) -> StoreResult<bool> {
        let Some(pool) = self.sqlite_pool() else { return Ok(false) };
        let path = file.to_str().ok_or_else(|| StoreError::unavailable("the path of the copy is not UTF-8"))?;
        sqlx::query("VACUUM INTO ?1").bind(path).execute(pool).await?;
        Ok(true)
    }
}
