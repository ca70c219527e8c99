//! The structs of the Arrow C data interface and of its streams, as their specification has them.

#![allow(
    unsafe_code,
    reason = "the structs are passed as pointers, and their owner releases them through a function of C"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// The type of a column, or of a whole batch.
#[repr(C)]
pub struct ArrowSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    pub release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub private_data: *mut c_void,
}

/// The values of a column, or of a whole batch.
#[repr(C)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut ArrowArray,
    pub dictionary: *mut ArrowArray,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub private_data: *mut c_void,
}

/// Batches of one type, one after another.
#[repr(C)]
pub struct ArrowArrayStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub private_data: *mut c_void,
}

// SAFETY: The specification lets a consumer move the structs and release them from any thread. Nothing writes to them after import.
unsafe impl Send for ArrowSchema {}
// SAFETY: As above.
unsafe impl Sync for ArrowSchema {}
// SAFETY: As above.
unsafe impl Send for ArrowArray {}
// SAFETY: As above.
unsafe impl Sync for ArrowArray {}
// SAFETY: As above; a stream is only used through `&mut`.
unsafe impl Send for ArrowArrayStream {}

/// A struct that its owner releases.
macro_rules! released {
    ($kind:ident) => {
        impl Drop for $kind {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: A struct with a release function has not been released, and this is its last use.
                    unsafe { release(self) }
                }
            }
        }

        impl $kind {
            /// Takes a struct over from a capsule, which keeps an empty one.
            ///
            /// # Safety
            ///
            /// `given` points to a valid struct that nothing else uses.
            pub unsafe fn take(given: *mut $kind) -> $kind {
                // SAFETY: The caller promises a valid struct.
                unsafe { ptr::replace(given, $kind::empty()) }
            }
        }
    };
}

released!(ArrowSchema);
released!(ArrowArray);
released!(ArrowArrayStream);

impl ArrowSchema {
    pub fn empty() -> ArrowSchema {
        ArrowSchema {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// The format of the values, such as `u` for text.
    pub fn format(&self) -> &str {
        text(self.format)
    }

    pub fn name(&self) -> &str {
        text(self.name)
    }

    pub fn children(&self) -> impl Iterator<Item = &ArrowSchema> + use<'_> {
        // SAFETY: A valid schema has so many children, which live as long as it does.
        (0..count(self.n_children)).map(|at| unsafe { &**self.children.add(at) })
    }

    pub fn dictionary(&self) -> Option<&ArrowSchema> {
        // SAFETY: A valid schema has a dictionary or a null pointer.
        unsafe { self.dictionary.as_ref() }
    }
}

impl ArrowArray {
    pub fn empty() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    pub fn length(&self) -> usize {
        count(self.length)
    }

    pub fn offset(&self) -> usize {
        count(self.offset)
    }

    pub fn child(&self, at: usize) -> Option<&ArrowArray> {
        // SAFETY: A valid array has so many children, which live as long as it does.
        (at < count(self.n_children)).then(|| unsafe { &**self.children.add(at) })
    }

    pub fn dictionary(&self) -> Option<&ArrowArray> {
        // SAFETY: A valid array has a dictionary or a null pointer.
        unsafe { self.dictionary.as_ref() }
    }

    pub fn buffers(&self) -> usize {
        count(self.n_buffers)
    }

    /// So many bytes of a buffer. A buffer that the array does not have is empty.
    pub fn buffer(&self, at: usize, length: usize) -> &[u8] {
        if at >= self.buffers() || length == 0 {
            return &[];
        }
        // SAFETY: A valid array has so many buffers; those of `length` bytes are long enough by its type, and live as long as it does.
        unsafe {
            let buffer = (*self.buffers.add(at)).cast::<u8>();
            if buffer.is_null() { &[] } else { std::slice::from_raw_parts(buffer, length) }
        }
    }
}

impl ArrowArrayStream {
    pub fn empty() -> ArrowArrayStream {
        ArrowArrayStream {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    pub fn schema(&mut self) -> Result<ArrowSchema, String> {
        let Some(get) = self.get_schema else { return Err("the stream was read before".to_owned()) };
        let mut schema = ArrowSchema::empty();
        // SAFETY: The stream is valid, and the schema is ours.
        let code = unsafe { get(self, &raw mut schema) };
        if code == 0 { Ok(schema) } else { Err(self.failure(code)) }
    }

    /// The next batch; `None` after the last.
    pub fn next(&mut self) -> Result<Option<ArrowArray>, String> {
        let Some(get) = self.get_next else { return Err("the stream was read before".to_owned()) };
        let mut array = ArrowArray::empty();
        // SAFETY: The stream is valid, and the array is ours.
        match unsafe { get(self, &raw mut array) } {
            0 => Ok(array.release.is_some().then_some(array)),
            code => Err(self.failure(code)),
        }
    }

    fn failure(&mut self, code: c_int) -> String {
        // SAFETY: The stream is valid, and just returned an error.
        let said = self.get_last_error.map(|get| text(unsafe { get(self) }).to_owned());
        said.filter(|said| !said.is_empty()).unwrap_or_else(|| format!("error {code}"))
    }
}

/// A count of the interface as one of Rust.
fn count(given: i64) -> usize {
    usize::try_from(given).unwrap_or_default()
}

fn text<'t>(given: *const c_char) -> &'t str {
    if given.is_null() {
        return "";
    }
    // SAFETY: Texts of the interface end in a zero byte, and live as long as their struct.
    unsafe { CStr::from_ptr(given) }.to_str().unwrap_or_default()
}
