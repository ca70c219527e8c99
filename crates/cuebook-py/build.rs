//! An extension module leaves Python's symbols open until it is loaded, which macOS has to be asked for.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
