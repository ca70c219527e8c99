//! The list of codes. A code is stable: it is never reused, and its page says what it means and what to do.
//!
//! The hundreds are the stages: 1 find, 2 verify and packs, 3 read, 4 fill, 5 render, 6 format, 7 run, 8 serve, 9 batch.

use std::fmt;

use super::Severity;

macro_rules! codes {
    ($($code:ident $variant:ident $name:literal $severity:ident $summary:literal)*) => {
        /// What kind of finding it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = concat!("`", stringify!($code), "` ", $summary, ".")] $variant,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The code itself, as in `CB101`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => stringify!($code),)* }
            }

            /// The rule's name, as in `prompt-not-found`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// What it means, in one sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Code::$variant => $summary,)* }
            }

            /// How bad it is unless the finding says otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// Its page: what it means, an example, and what to do.
            pub fn page(self) -> &'static str {
                match self { $(Code::$variant => include_str!(concat!("pages/", stringify!($code), ".md")),)* }
            }
        }
    };
}

codes! {
    CB101 PromptNotFound "prompt-not-found" Error "The library has no prompt with this id"
    CB102 PromptConflict "prompt-conflict" Error "Several prompts have the same id, and no choice is recorded"
    CB103 StaleResolution "stale-resolution" Error "A recorded choice no longer fits the library"
    CB104 InvalidId "invalid-id" Error "The argument is neither a prompt id nor a path"
    CB105 BadConfig "bad-config" Error "`cuebook.toml` is invalid"
    CB106 BadVocab "bad-vocab" Error "A vocabulary file is invalid"
    CB107 BadResolution "bad-resolution-file" Error "`resolution.json` is invalid"
    CB108 BadDefaults "bad-defaults-file" Error "`defaults.json` is invalid"
    CB109 BadAgent "bad-agent-file" Error "An `agent.json` is invalid"
    CB110 Unreadable "unreadable-file" Error "Cuebook cannot read a file or folder"
    CB111 NoTemplate "no-template" Error "A prompt's folder has neither a template nor a prompt.py"
    CB112 FileTooLarge "file-too-large" Error "A file is larger than the limit"
    CB113 NotUtf8 "not-utf8" Error "A file is not UTF-8"
    CB114 WriteFailed "write-failed" Error "Cuebook cannot write a file"
    CB115 UnknownSource "unknown-source" Error "The chosen source is not a candidate"
    CB116 ItemNotFound "item-not-found" Error "No space has an item with this id"
    CB117 InvalidItemId "invalid-item-id" Error "The argument is not an item id"
    CB201 BadManifest "bad-pack-manifest" Error "A field of pack.json is invalid"
    CB202 MissingPackPrompt "pack-prompt-missing" Error "A pack lists a prompt, partial or provider that is missing"
    CB203 UnlistedPackPrompt "pack-prompt-unlisted" Warning "A pack contains a prompt that its manifest does not list"
    CB204 ArchiveRefused "archive-refused" Error "An archive holds an entry that Cuebook refuses to unpack"
    CB205 PackNotFound "pack-not-found" Error "No installed pack has this id"
    CB206 PackExists "pack-exists" Error "A pack with this id is already installed"
    CB207 ApprovalRequired "approval-required" Error "A pack contains code that you have not approved"
    CB208 ConfirmationNeeded "confirmation-needed" Error "A step needs confirmation, but there is no terminal to ask on"
    CB209 BadApprovals "bad-approvals-file" Error "A file of approvals is invalid"
    CB210 BadOverride "bad-override" Error "An override file is invalid"
    CB211 StaleOverride "stale-override" Warning "An override is stale: its section has changed"
    CB220 Unsigned "unsigned-item" Error "An item has no signature"
    CB221 ContentChanged "content-changed" Error "An item changed after it was signed"
    CB222 ItemMoved "item-moved" Error "An item was signed for another location"
    CB223 UntrustedKey "untrusted-key" Error "An item was signed with a key that you do not trust"
    CB224 ForgedSignature "forged-signature" Error "A signature does not match the key that it names"
    CB225 BadSignature "bad-signature" Error "A signature is malformed"
    CB226 NarrowSignature "narrow-signature" Error "The signature of a directive covers only part of its file"
    CB227 BadKey "bad-key" Error "A signing key is missing or unusable"
    CB228 BadTrust "bad-trust" Error "A file in the trust store is invalid"
    CB229 LockMismatch "lock-mismatch" Error "A chain differs from its lockfile"
    CB230 BadLockfile "bad-lockfile" Error "A lockfile is invalid"
    CB231 GrantNeeded "grant-needed" Error "A project needs a permission that you have not granted"
    CB232 BadGrants "bad-grants-file" Error "A file of grants is invalid"
    CB237 UnboundSignature "unbound-signature" Error "A signature does not say which item it is for"
    CB238 OlderVersion "older-version" Error "An item is older than a version you used before"
    CB239 BadPackageSource "bad-package-source" Error "The source of a package is invalid, or holds no package"
    CB240 FetchFailed "fetch-failed" Error "Cuebook cannot fetch a package from its source"
    CB241 BadPackageLock "bad-package-lock" Error "`cuebook.lock` is invalid"
    CB242 PackagesDiffer "packages-differ" Error "The installed packages differ from `cuebook.lock`"
    CB243 PublisherKey "publisher-key" Error "The key of a package's publisher is not accepted, or changed"
    CB244 PackageNotLocked "package-not-locked" Error "`cuebook.lock` has no package with this name"
    CB245 RegistryAccess "registry-access" Error "The address or the keys of a registry are missing, invalid or refused"
    CB246 BadRegistryPrompt "bad-registry-prompt" Error "A prompt of a registry cannot become a file"
    CB247 PushFailed "push-failed" Error "A registry does not accept a prompt"
    CB301 PythonSyntax "python-syntax" Error "prompt.py is not valid Python"
    CB302 NotLiteral "not-a-literal" Error "A definition in prompt.py is computed, but must be a literal"
    CB303 BadDefinition "bad-definition" Error "A definition in prompt.py has the wrong type"
    CB304 TemplateSyntax "template-syntax" Error "A template is invalid"
    CB305 MissingTemplate "missing-template" Error "The template that METADATA names does not exist"
    CB306 MissingInclude "missing-include" Error "An included, imported or extended template does not exist"
    CB307 IncludeCycle "include-cycle" Error "Templates include or extend each other in a cycle"
    CB308 MissingParent "missing-parent" Error "The prompt that METADATA extends does not exist"
    CB309 ParentCycle "parent-cycle" Error "Prompts extend each other in a cycle"
    CB310 UnknownBlock "unknown-block" Warning "A block has no effect, because no parent has it"
    CB311 ByteOrderMark "byte-order-mark" Warning "A file begins with a byte-order mark"
    CB312 CarriageReturns "carriage-returns" Note "A file has Windows line endings"
    CB313 IdMismatch "id-mismatch" Error "The id in METADATA differs from the folder's name"
    CB314 BadDefault "bad-default" Error "A default value does not have its variable's type"
    CB315 UnknownKey "unknown-key" Warning "A definition has an unknown key"
    CB316 UnknownFilter "unknown-filter" Error "A template uses an unknown filter, test or function"
    CB317 HookSignature "hook-signature" Error "A hook or a variable provider has the wrong signature"
    CB318 BadFrontMatter "bad-front-matter" Error "The front matter of a file is not closed, or is invalid YAML"
    CB319 BadPrompty "bad-prompty" Error "A field of a .prompty file is invalid"
    CB320 PromptyV1 "prompty-v1" Warning "A .prompty file uses the syntax of Prompty 1"
    CB321 NotPortable "not-portable" Note "A .prompty template uses a feature that not every Prompty runtime has"
    CB322 UntrustedEndpoint "untrusted-endpoint" Warning "A prompt chooses the address of its requests"
    CB323 AlmostMarker "almost-marker" Warning "A line looks like a role marker, but is text"
    CB324 ChangedNonce "changed-nonce" Warning "A template changes the placeholder of a conversation, image, file or audio input"
    CB325 BadSection "bad-section" Error "A section or one of its tools is invalid"
    CB326 BadDirective "bad-directive" Error "A directive is invalid"
    CB327 BadKnowledge "bad-knowledge" Error "A knowledge item is invalid"
    CB328 BadTool "bad-tool" Error "The metadata of a tool is invalid"
    CB332 LeftBehind "left-behind" Warning "Only the text of an included prompt is used"
    CB336 EmptyTemplate "empty-template" Warning "A template has no text"
    CB337 LanguageFallback "language-fallback" Warning "A prompt has no template in the requested language"
    CB338 KindAsDefault "kind-as-default" Warning "The default of an input is the name of a kind"
    CB401 InvalidVariables "invalid-variables" Error "A required variable is missing, or a value has the wrong type"
    CB402 UndeclaredVariable "undeclared-variable" Warning "A template uses an undeclared variable"
    CB403 UnusedVariable "unused-variable" Warning "A variable is declared, but unused"
    CB404 UnknownVariable "unknown-variable" Error "A value was passed for an unknown variable"
    CB405 HooksUnavailable "hooks-unavailable" Error "The prompt has hooks, but hooks are disabled or cannot run here"
    CB406 ProviderUnavailable "provider-unavailable" Error "The prompt needs variables of a pack, but providers are disabled or cannot run here"
    CB407 BadInput "bad-input" Error "A value on the command line or in a variables file is invalid"
    CB408 PythonNotFound "python-not-found" Error "No Python found to run hooks"
    CB409 SandboxIncomplete "sandbox-incomplete" Error "This system lacks a protection that hooks need"
    CB410 HookFailed "hook-failed" Error "A hook or a variable provider raised an exception"
    CB411 HookReturn "hook-return" Error "A hook or a variable provider returned the wrong type"
    CB412 HookTimeout "hook-timeout" Error "A hook or a variable provider exceeded its time limit"
    CB413 HookOutput "hook-output" Error "A hook or a variable provider returned too much"
    CB414 HookDied "hook-died" Error "The process of a hook ended early"
    CB415 ProviderConflict "provider-conflict" Error "Several packs provide the same namespace, and no choice is recorded"
    CB416 ProviderSkipped "provider-skipped" Warning "An optional variable provider failed, and Cuebook rendered without it"
    CB417 BadWorkspace "bad-workspace" Error "The workspace is not a folder that hooks can use"
    CB418 EnvNotSet "env-not-set" Error "A file refers to an environment variable that is not set"
    CB419 FileReference "file-reference" Error "A prompt refers to a file that is missing or outside its folder"
    CB420 NoProvider "no-provider" Warning "A template asks about a namespace that no pack provides"
    CB421 RepositoryHidden "repository-hidden" Warning "Code of a hook uses git, but hooks cannot read the repository"
    CB501 RenderFailed "render-failed" Error "An operation in the template failed"
    CB502 UndefinedValue "undefined-value" Error "The template needs a value that is missing"
    CB503 OutputTooLarge "output-too-large" Error "The rendered text is longer than the prompt's limit"
    CB504 OutOfFuel "out-of-fuel" Error "The template exceeded its time or step limit"
    CB505 TooDeep "too-deep" Error "Templates are nested too deeply"
    CB506 ValueTooLarge "value-too-large" Error "A value became too large while the template ran"
    CB507 UnknownEngine "unknown-engine" Error "The template engine or parser of a prompt is unknown"
    CB508 StrictViolation "strict-violation" Error "The value of a strict input looks like a role marker"
    CB509 ExpansionRequired "expansion-required" Error "A model wants to see more of a section"
    CB510 DoesNotFit "does-not-fit" Error "The prompt exceeds its token budget, and no optional section is left to drop"
    CB512 LargerThanWindow "larger-than-window" Warning "The prompt is larger than the context window of its model"
    CB514 ForgedStructure "forged-structure" Error "A value changed the structure of a prompt"
    CB515 BadCases "bad-cases" Error "A file of test cases is invalid"
    CB516 NotCarriedOver "not-carried-over" Warning "Converting loses or changes a part of the prompt"
    CB517 CannotConvert "cannot-convert" Error "The target dialect has no equivalent for a part of the prompt"
    CB518 WouldOverwrite "would-overwrite" Error "The output file already exists"
    CB519 GitFailed "git-failed" Error "Git is missing, or the folder is not a readable repository"
    CB520 UnknownRevision "unknown-revision" Error "The revision does not exist"
    CB521 NotInRevision "not-in-revision" Error "The prompt does not exist in this revision"
    CB526 ConsentNeeded "consent-needed" Error "A pack upgrade changes something you accepted, and needs your consent"
    CB527 NotDriven "not-driven" Error "An attack did not reach an input, because every value was refused"
    CB528 ClosedTag "closed-tag" Error "A value can close the tag around it"
    CB529 LeftoverTag "leftover-tag" Error "A file that is read as plain text still has a template tag"
    CB530 StaleOutput "stale-output" Error "A file written by `cuebook convert` no longer fits its source"
    CB601 BadMessages "bad-messages" Error "The value of a conversation, image, file or audio input is invalid"
    CB602 UnknownWire "unknown-wire" Error "The wire format is unknown"
    CB603 UnsupportedContent "unsupported-content" Error "A provider does not accept a part of the prompt"
    CB604 UnsupportedSchema "unsupported-schema" Error "A provider does not accept a schema of the prompt"
    CB605 BadReply "bad-reply" Error "A provider's reply is malformed"
    CB606 ProviderFailed "provider-failed" Error "A provider's reply reports an error"
    CB607 OutputMismatch "output-mismatch" Error "A reply does not match the prompt's outputs"
    CB701 ExecutorNotFound "executor-not-found" Error "The executor of a tool does not exist"
    CB702 ChainCycle "chain-cycle" Error "The executors of a tool form a cycle"
    CB703 ChainTooLong "chain-too-long" Error "A tool has too many executors in its chain"
    CB704 ChainInvalid "chain-invalid" Error "The parts of a chain do not fit together"
    CB705 BadRuntime "bad-runtime" Error "A runtime is unusable"
    CB706 CannotStart "cannot-start" Error "The program of a tool cannot start"
    CB707 TimedOut "timed-out" Error "A tool exceeded its time limit"
    CB708 ToolFailed "tool-failed" Error "A tool failed"
    CB709 OutsideProject "outside-project" Error "A tool tried to access a file outside the project"
    CB710 BadParameters "bad-parameters" Error "The parameters do not fit the item"
    CB711 HttpFailed "http-failed" Error "A tool's request failed"
    CB712 ThreadNotFound "thread-not-found" Error "The thread does not exist"
    CB713 ThreadBusy "thread-busy" Error "Another process runs the thread"
    CB714 BrokenLog "broken-log" Error "The log of a thread was changed by another program"
    CB715 BadLimit "bad-limit" Error "A limit of a thread is invalid"
    CB716 LimitReached "limit-reached" Error "A thread reached one of its limits"
    CB717 NotPermitted "not-permitted" Error "A thread lacks a permission"
    CB718 BudgetExhausted "budget-exhausted" Error "A thread has too little budget left for a child"
    CB719 BadProviderFile "bad-provider-file" Error "A provider's file is invalid"
    CB720 NoModel "no-model" Error "No provider offers the model"
    CB721 KeyMissing "key-missing" Error "The API key of a provider is not set"
    CB722 NoAnswer "no-answer" Error "A provider did not answer"
    CB723 ReplayMismatch "replay-mismatch" Error "The recorded replies do not fit the requests"
    CB724 StoreFailed "store-failed" Error "The thread store is unusable"
    CB725 OutputsMissing "outputs-missing" Error "A thread ended without its required outputs"
    CB726 BadHook "bad-hook" Error "A hook of a thread is invalid"
    CB727 ThreadCancelled "thread-cancelled" Error "A thread was cancelled"
    CB728 CannotResume "cannot-resume" Error "A thread cannot be resumed"
    CB729 Refused "model-refused" Error "A model or a safety filter declined to answer"
    CB730 NoHandler "no-handler" Error "A tool of the prompt has no implementation"
    CB731 FenceUnavailable "fence-unavailable" Error "A tool that a model calls cannot run in the sandbox on this system"
    CB732 HostRefused "host-refused" Error "A tool that a model calls needs a network host that is not allowed"
    CB735 NotYourLog "not-your-log" Error "The log of a thread was not written with your log key"
    CB736 BadLogKey "bad-log-key" Error "The log key is unusable"
    CB737 AskAgain "confirm-permissions" Error "Resuming a thread would renew its permissions"
    CB801 AddressInUse "address-in-use" Error "Another program already uses the server's address"
    CB802 BadAddress "bad-address" Error "A server cannot listen on its address"
    CB803 TokenMissing "token-missing" Error "The token of an MCP server is missing or too weak"
    CB804 BadOrigin "bad-origin" Error "An origin is invalid"
    CB805 NotAllowedOverMcp "not-allowed-over-mcp" Error "An MCP client asks for something that you have not allowed"
    CB806 ProjectNotServed "project-not-served" Error "An MCP client names a project that the server does not serve"
    CB807 ServerBusy "server-busy" Error "An MCP client has too many open requests"
    CB808 BadAllow "bad-allow" Error "A permission pattern for MCP clients is invalid"
    CB901 BadData "bad-data" Error "A data file, or one of its rows, is unreadable"
    CB902 BadColumns "bad-columns" Error "The columns of a data file do not fit the prompt"
    CB903 InvalidRows "invalid-rows" Error "Rows of a batch are invalid, so nothing was sent"
    CB904 BatchBusy "batch-busy" Error "Another process works on the same batch"
    CB905 BadJournal "bad-journal" Error "The journal of a batch is damaged"
    CB906 NotAsked "not-asked" Error "A batch ended before it sent a row to the model"
    CB907 JobFailed "job-failed" Error "A job of a provider's batch interface failed"
}

impl Code {
    /// The code with this number (`CB101` or `101`) or name (`prompt-not-found`), whatever the case.
    pub fn find(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| {
            let number = code.as_str();
            number.eq_ignore_ascii_case(text)
                || number.strip_prefix("CB") == Some(text)
                || code.name().eq_ignore_ascii_case(text)
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
