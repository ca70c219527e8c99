//! Threads of an engine: how one is started, registered and run, here or in a process of its own.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use cuebook::items::{ItemId, ItemType};
use cuebook::variables::{Context, Variables};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Prepared, Result};
use serde_json::{Map, Value as Json};

use super::Secrets;
use super::directive_tools::DirectiveThread;
use super::drive::{Finished, ReadyThread, drive};
use super::hooks::ThreadHooks;
use super::launch::Launch;
use super::log::PAGE;
use super::managed::{Parts, ThreadSetup, ThreadTools};
use super::prompt_tools::PromptTools;
use super::rebuild::Rebuilt;
use super::resume::Resume;
use super::skills::{self, SkillTools};
use super::start::{self, DirectiveRequest};
use super::{Entry, Kind, Money, Status, ThreadId, detach};
use crate::engine::{Engine, Project};
use crate::policy::caps::capped;
use crate::policy::limits::ThreadLimits;
use crate::policy::returns;
use crate::provider::Chosen;
use crate::store::{Cost, Holder, New, Record, Store};
use crate::turn::Start;
use crate::watch::Watch;

/// A prompt of any dialect that is to be run.
///
/// ```
/// use cuebook_run::RunRequest;
///
/// let request = RunRequest::new("reply").var("letter", "Where is order 7?").model("gpt-4o").limit("turns", 5);
/// assert_eq!(request.limit_overrides["turns"], 5);
/// let request = request.tool("orders", "desk/orders").skill("letters").allow("rye.load.knowledge.desk.*");
/// assert_eq!((request.skills.len(), request.allow.len()), (1, 1));
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Its id, or the path of its file.
    pub prompt: String,
    /// The values of its variables.
    pub variables: Variables,
    /// What else it is rendered with.
    pub context: Context,
    /// The model, instead of the prompt's own.
    pub model: Option<String>,
    /// Other limits.
    pub limit_overrides: Map<String, Json>,
    /// The items behind its tools, by the names of the tools. What is given here is allowed.
    pub tools: BTreeMap<String, String>,
    /// What it may do besides, as patterns such as `rye.execute.tool.rye.file-system.*`.
    pub allow: Vec<String>,
    /// The ids of the skills that its model can open.
    pub skills: Vec<String>,
    /// Does not wait for the thread.
    pub is_async: bool,
}

/// A thread that runs or ran.
#[derive(Debug)]
pub enum ThreadRun {
    /// It ran to its end, in whatever way.
    Finished(Box<Finished>),
    /// It runs in a process of its own.
    Detached {
        /// The thread.
        id: ThreadId,
        /// The process.
        pid: u32,
    },
}

impl Engine {
    /// The threads of a project: dead ones among them are marked before anybody looks, and tools that they left running are
    /// stopped.
    ///
    /// # Errors
    ///
    /// `CB724` if they cannot be opened.
    pub fn threads(&self, project: Option<&Path>) -> Result<Arc<dyn Store>> {
        let store = self.store_of(&*self.project(project)?)?;
        super::sweep(&*store)?;
        Ok(store)
    }

    /// The same for one look: where there are no threads yet, nothing is made for them, and what is returned stays empty.
    ///
    /// # Errors
    ///
    /// `CB724` if they cannot be opened.
    #[doc(hidden)]
    pub fn threads_so_far(&self, project: Option<&Path>) -> Result<Arc<dyn Store>> {
        let store = self.looked_at(&*self.project(project)?)?;
        super::sweep(&*store)?;
        Ok(store)
    }

    /// Runs a prompt of any dialect in a thread.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from beginning. [`Finished`] says how it ended, well or not.
    pub fn run(&self, book: &Book, request: &RunRequest, watch: &dyn Watch) -> Result<ThreadRun> {
        let (project, store, beginning) = self.beginning(book, request, watch)?;
        self.begin(&project, &store, beginning, request.is_async, watch)
    }

    /// Decides everything about a thread that is to begin. Nothing is registered yet.
    pub(super) fn beginning(
        &self,
        book: &Book,
        request: &RunRequest,
        watch: &dyn Watch,
    ) -> Result<(Arc<Project>, Arc<dyn Store>, NewThreadParts<'_>)> {
        let project = self.project(Some(book.library().root()))?;
        let offered = skills::offered(&project, &request.skills)?;
        let context = book.complete(&request.context)?;
        let prepared = book.prepare(&request.prompt, &context)?;
        if prepared.directive().is_some() {
            refuse_tools(&prepared, request)?;
            let (store, mut beginning) = self.directive_beginning(&project, &prepared, request, watch)?;
            beginning.launch.skills = offered;
            return Ok((project, store, beginning));
        }
        // A store that cannot be used is reported first, and no store is made for a run that cannot begin.
        self.looked_at(&project)?;
        let (mut launch, chosen, thread_tools) =
            self.launch_prompt(&project, &prepared, request, (*context).clone())?;
        if !offered.is_empty() {
            skills::refuse_same_name(&thread_tools)?;
        }
        launch.skills = offered;
        self.ready_to_record()?;
        let store = self.store_of(&project)?;
        let beginning = NewThreadParts {
            launch,
            chosen,
            parent_holder: None,
            entries: Vec::new(),
            thread_tools: Some(thread_tools),
        };
        Ok((project, store, beginning))
    }

    fn directive_beginning(
        &self,
        project: &Arc<Project>,
        prepared: &Prepared,
        request: &RunRequest,
        watch: &dyn Watch,
    ) -> Result<(Arc<dyn Store>, NewThreadParts<'_>)> {
        let inputs: Map<String, Json> = request
            .variables
            .names()
            .filter_map(|name| Some((name.to_owned(), request.variables.get(name)?)))
            .collect();
        let id = ItemId::new(&prepared.prompt().id)?;
        prepared.verify_signature()?;
        let no_item = || project.spaces.not_found(ItemType::Directive, &id);
        // A file outside the spaces can be rendered without a signature.
        project.spaces.find(ItemType::Directive, &id)?.ok_or_else(no_item)?;
        let directive = prepared.directive().ok_or_else(no_item)?;
        let filled = directive.fill(&inputs)?;
        let wanted = DirectiveRequest {
            id: &id,
            prepared,
            directive,
            parameters: &inputs,
            filled: &filled,
            context: &request.context,
            model: request.model.as_deref(),
            limit_overrides: &request.limit_overrides,
            parent: None,
            parent_holder: None,
        };
        self.thread_beginning(project, &wanted, watch)
    }

    /// Checks what would keep a directive from beginning in a thread, and begins none: its limits and permissions, its provider with
    /// model and key, its hooks, and the recording that is to be played back.
    pub(crate) fn check_thread(&self, project: &Arc<Project>, wanted: &DirectiveRequest<'_>) -> Result<()> {
        let store = self.looked_at(project)?;
        let parent = wanted.parent.as_ref().map(|id| start::parent(&*store, id, false)).transpose()?;
        start::decide(self, project, parent.as_ref(), wanted)?;
        let variables = Variables::from_json(wanted.parameters);
        wanted.prepared.render(&variables, &Arc::default()).map(drop)
    }

    /// Runs a directive in a thread.
    pub(crate) fn run_thread(
        &self,
        project: &Arc<Project>,
        wanted: &DirectiveRequest<'_>,
        is_async: bool,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        let (store, beginning) = self.thread_beginning(project, wanted, watch)?;
        self.begin(project, &store, beginning, is_async, watch)
    }

    fn thread_beginning(
        &self,
        project: &Arc<Project>,
        wanted: &DirectiveRequest<'_>,
        watch: &dyn Watch,
    ) -> Result<(Arc<dyn Store>, NewThreadParts<'_>)> {
        let parent = {
            // None is made for what cannot begin, and what is looked at does not stay for as long as the thread.
            let store = self.looked_at(project)?;
            wanted.parent.as_ref().map(|id| start::parent(&*store, id, false)).transpose()?
        };
        let (mut launch, chosen, entries) = start::directive(self, project, parent.as_ref(), wanted, watch)?;
        // Where it runs in another process, that one goes on with the recording.
        self.ready_to_record()?;
        let store = self.store_of(project)?;
        if let Some(parent) = &parent
            && let Some(account) = store.account(&parent.id)?
        {
            let sets = |limits: Option<&Map<String, Json>>| {
                limits.is_some_and(|limits| limits.contains_key("spend"))
            };
            let is_set = sets(wanted.directive.limits.as_ref()) || sets(Some(wanted.limit_overrides));
            // Without a limit in the request, its siblings and its parent keep the other half.
            let share =
                if is_set { account.remaining() } else { Money::from_nanos(account.remaining().nanos() / 2) };
            launch.limits.spend = launch.limits.spend.min(share);
        }
        if parent.is_some() {
            let set = [wanted.directive.limits.as_ref(), Some(wanted.limit_overrides)];
            let mut asked =
                ThreadLimits { currency: launch.limits.currency.clone(), ..ThreadLimits::defaults() };
            for limits in set.iter().flatten() {
                asked = asked.with(limits, "limits")?;
            }
            launch.capped = capped(&set, &asked, &launch.limits);
        }
        let parent_holder = wanted.parent_holder.clone();
        Ok((store, NewThreadParts { launch, chosen, parent_holder, entries, thread_tools: None }))
    }

    /// Registers a thread, and runs it here or in a process of its own.
    pub(super) fn begin(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        beginning: NewThreadParts<'_>,
        is_async: bool,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        if is_async {
            let secrets = self.secrets(project)?;
            let record = store.begin(&registration(&**store, &beginning, &secrets, None)?)?;
            return self.detach(store, project, &record, watch);
        }
        self.begin_with(project, store, beginning, watch, |new| store.begin(new))
    }

    /// Registers a thread that this process holds, in one way or another, and runs it.
    pub(super) fn begin_with(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        beginning: NewThreadParts<'_>,
        watch: &dyn Watch,
        register: impl FnOnce(&New) -> Result<Record>,
    ) -> Result<ThreadRun> {
        let holder = Holder::of_this_process();
        let secrets = self.secrets(project)?;
        let record = register(&registration(&**store, &beginning, &secrets, Some(holder.clone()))?)?;
        self.report_events(&**store, &record.id, 0, watch);
        let NewThreadParts { mut launch, chosen, thread_tools, .. } = beginning;
        // Data that is not part of the log is not reported.
        secrets.scrub_messages(&mut launch.messages);
        let known = launch.messages.len();
        let start = Start { conversation: launch.messages.clone(), known, ..Start::default() };
        let rebuilt = Rebuilt::fresh(launch, start);
        let thread_tools =
            thread_tools.map(|thread_tools| Box::new(thread_tools) as Box<dyn ThreadTools + '_>);
        self.go(project, store, (record.id, holder), rebuilt, chosen, thread_tools, watch)
    }

    fn detach(
        &self,
        store: &Arc<dyn Store>,
        project: &Project,
        record: &Record,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        let id = &record.id;
        // The thread may be cancelled before the process has begun.
        let how = Resume { behind: Some(record.last.0), allow_again: true, ..Resume::default() };
        match detach::start(self.settings(), store, project.spaces.project(), record, &how, watch) {
            Ok(pid) => Ok(ThreadRun::Detached { id: id.clone(), pid }),
            Err(error) => {
                // No process will run it, so it must not wait.
                if matches!(store.record(id)?, Some(record) if record.status == Status::Created) {
                    store.cancel(id)?;
                }
                Err(error)
            }
        }
    }

    /// Reports to observers what was written together with a change of the registry.
    pub(super) fn report_events(&self, store: &dyn Store, id: &ThreadId, after: u64, watch: &dyn Watch) {
        for event in store.events(id, after, PAGE).unwrap_or_default() {
            watch.activity(id, &crate::watch::Activity::Event(&event));
        }
    }

    /// Runs a thread that this process holds, and those that go on with its conversation.
    #[expect(clippy::too_many_arguments, reason = "they are what a thread is made of")]
    pub(super) fn go(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        (id, holder): (ThreadId, Holder),
        rebuilt: Rebuilt,
        chosen: Chosen,
        thread_tools: Option<Box<dyn ThreadTools + '_>>,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        let Rebuilt { launch, start, cost, nudges, open_hooks, counted, full, opened_skills, .. } = rebuilt;
        let secrets = self.secrets(project)?;
        let model = self.chosen_model(&chosen)?;
        let thread_hooks = ThreadHooks::new(self, project.clone(), &launch)?;
        let own;
        let thread_tools: &dyn ThreadTools = match &thread_tools {
            Some(thread_tools) => &**thread_tools,
            None => {
                let outputs = returns::from_json(&launch.outputs)?;
                own = DirectiveThread::new(self, project.clone(), &launch.capabilities, outputs);
                &own
            }
        };
        let with_skills;
        let thread_tools = match launch.skills.is_empty() {
            true => thread_tools,
            false => {
                with_skills = SkillTools::new(thread_tools, project.clone(), &launch.skills, opened_skills);
                &with_skills
            }
        };
        let held = self.hold(store, &id);
        let parts = Parts {
            id,
            store: store.clone(),
            holder: holder.clone(),
            launch: &launch,
            thread_tools,
            model: &model,
            thread_hooks: &thread_hooks,
            secrets: &secrets,
            watch,
            cancelled: held.as_ref().map(|(_, looked_for)| looked_for.flag.clone()).unwrap_or_default(),
        };
        let before = ThreadSetup { cost, nudges, open_hooks, counted, full };
        let finished = drive(ReadyThread { parts, start, before })?;
        if finished.full {
            let (id, holder) = (finished.id.clone(), holder);
            return match self.go_on(project, store, &launch, (finished, &holder), chosen, watch)? {
                Ok(began) => Ok(began),
                Err(error) => self.stay(store, (id, &holder), error),
            };
        }
        Ok(self.with_conversation(&**store, finished))
    }
}

/// What is written when a thread begins.
pub(super) fn registration(
    store: &dyn Store,
    beginning: &NewThreadParts<'_>,
    secrets: &Secrets,
    holder: Option<Holder>,
) -> Result<New> {
    let launch = &beginning.launch;
    let mut first = vec![Entry::new(Kind::Started, launch.to_json())];
    first.extend(beginning.entries.iter().cloned());
    for entry in &mut first {
        secrets.scrub(&mut entry.payload);
    }
    let parent_spawns = match &launch.parent {
        Some(parent) => Some(start::parent(store, parent, false)?.limits.spawns),
        None => None,
    };
    Ok(New {
        prompt: launch.prompt.clone(),
        parent: launch.parent.clone(),
        parent_holder: beginning.parent_holder.clone(),
        parent_spawns,
        spend: launch.limits.spend,
        model: Some(launch.model.id.clone()),
        unpriced: launch.unpriced,
        continuation_of: launch.continuation_of.clone(),
        holder,
        entries: first,
    })
}

/// A thread that is about to be registered.
pub(super) struct NewThreadParts<'b> {
    pub(super) launch: Launch,
    pub(super) chosen: Chosen,
    /// Who runs its parent, if it is started for the parent.
    pub(super) parent_holder: Option<Holder>,
    pub(super) entries: Vec<Entry>,
    /// The tools of a prompt that is no directive.
    pub(super) thread_tools: Option<PromptTools<'b>>,
}

impl Rebuilt {
    /// A thread that has just begun.
    fn fresh(launch: Launch, start: Start) -> Rebuilt {
        Rebuilt {
            start,
            cost: Cost::default(),
            nudges: 0,
            unknown: Vec::new(),
            open_hooks: Vec::new(),
            opened: cuebook::sections::VisibilityOverrides::new(),
            prompt_messages: launch.prompt_messages,
            sources: super::rebuild::first_sources(&launch),
            origins: launch.origins.clone(),
            counted: None,
            full: None,
            opened_skills: super::skills::open_at_start(&launch),
            tool_sources: HashMap::new(),
            launch,
        }
    }
}

/// A directive's author declares its tools and permissions, so an option for them is an error.
fn refuse_tools(prepared: &Prepared, request: &RunRequest) -> Result<()> {
    if request.tools.is_empty() && request.allow.is_empty() {
        return Ok(());
    }
    let message =
        format!("`{}` is a directive, and its <permissions> say what it may do", prepared.prompt().id);
    let hint = Hint::command_line("--tool and --allow work on prompts that declare tools: leave them out")
        .for_programs("leave out `tools` and `allow`: they are for prompts that declare tools");
    Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
}
