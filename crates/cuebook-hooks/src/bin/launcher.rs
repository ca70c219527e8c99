//! The launcher on its own, for programs that use Cuebook as a library and do not want to launch themselves.

fn main() {
    cuebook_hooks::sandbox::launch_if_asked();
    eprintln!("other programs start this program to run hooks; do not start it directly");
    std::process::exit(2);
}
