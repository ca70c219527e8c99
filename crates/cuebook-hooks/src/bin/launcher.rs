//! The launcher on its own, for programs that use Cuebook as a library and do not want to launch themselves.

fn main() {
    cuebook_hooks::sandbox::launch_if_asked();
    eprintln!("this program is started by programs that run hooks, and does nothing by itself");
    std::process::exit(2);
}
