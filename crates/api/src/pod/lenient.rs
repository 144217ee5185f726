//! Reading what an API server would not have written: in custom resources templates are kept as users wrote
//! them, where `tolerations: null` and `cpu: 4` are common.

use serde::{Deserialize, Deserializer};

/// `null` is what the field is when it is absent.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
