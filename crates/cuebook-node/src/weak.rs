//! References to objects of JavaScript that do not keep them alive.
//!
//! A finalizer would be the usual way to learn that an object is gone, but Node runs finalizers only when its event loop turns: a program
//! that renders in a loop would keep everything. A reference is empty as soon as the object was collected.

#![allow(unsafe_code, reason = "napi has no safe reference that is weak")]

use std::ptr;

use napi::bindgen_prelude::Object;
use napi::{Env, JsValue as _, Status, sys};

/// A reference that is empty once its object was collected.
pub struct Weak(sys::napi_ref);

impl Weak {
    /// A reference to an object.
    pub fn new(env: &Env, object: &Object<'_>) -> napi::Result<Weak> {
        let mut reference = ptr::null_mut();
        // SAFETY: The environment is the one that runs, and the object belongs to its present scope.
        let status =
            unsafe { sys::napi_create_reference(env.raw(), object.value().value, 0, &raw mut reference) };
        match Status::from(status) {
            Status::Ok => Ok(Weak(reference)),
            status => Err(napi::Error::new(status, "cannot refer to the object")),
        }
    }

    /// Whether its object was collected.
    pub fn is_gone(&self, env: &Env) -> bool {
        let mut value = ptr::null_mut();
        // SAFETY: The environment is the one that made the reference, and `delete` takes it away, so that it exists.
        let status = unsafe { sys::napi_get_reference_value(env.raw(), self.0, &raw mut value) };
        status == sys::Status::napi_ok && value.is_null()
    }

    /// Deletes the reference. Without this it lives as long as its environment.
    pub fn delete(self, env: &Env) {
        // SAFETY: As in `is_gone`. A failure leaves a few bytes to the environment.
        let _ = unsafe { sys::napi_delete_reference(env.raw(), self.0) };
    }
}
