//! Another container's process, in the same pid namespace and of the same user, attacks the rehearsal.
