//! The list of codes. A code is stable: it is never reused, and its page says what it means and what to do.
//!
//! The hundreds are the stages: 1 find, 2 verify and packs, 3 read, 4 fill, 5 render, 6 speak, 7 run, 8 serve.

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
    CB101 PromptNotFound "prompt-not-found" Error "No place of the library offers the id"
    CB102 PromptConflict "prompt-conflict" Error "Several places offer the same id and nobody has chosen between them"
    CB103 StaleResolution "stale-resolution" Error "A recorded choice no longer fits what the library holds"
    CB104 InvalidId "invalid-id" Error "What was given is neither a prompt id nor a path"
    CB105 BadConfig "bad-config" Error "`cuebook.toml` cannot be understood"
    CB106 BadVocab "bad-vocab" Error "A vocabulary file cannot be understood"
    CB107 BadResolution "bad-resolution-file" Error "`resolution.json` cannot be understood"
    CB108 BadDefaults "bad-defaults-file" Error "`defaults.json` cannot be understood"
    CB109 BadAgent "bad-agent-file" Error "An `agent.json` cannot be understood"
    CB110 Unreadable "unreadable-file" Error "A file or folder cannot be read"
    CB111 NoTemplate "no-template" Error "A prompt's folder holds neither a template nor a prompt.py"
    CB112 FileTooLarge "file-too-large" Error "A file is larger than the limit"
    CB113 NotUtf8 "not-utf8" Error "A file is not UTF-8"
    CB114 WriteFailed "write-failed" Error "A file could not be written"
    CB115 UnknownSource "unknown-source" Error "The chosen source is not one of the candidates"
    CB116 ItemNotFound "item-not-found" Error "No space has an item of this id"
    CB117 InvalidItemId "invalid-item-id" Error "What was given is no id of an item"
    CB201 BadManifest "bad-pack-manifest" Error "A field of pack.json is wrong"
    CB202 MissingPackPrompt "pack-prompt-missing" Error "A pack lists a prompt, partial or provider that it does not contain"
    CB203 UnlistedPackPrompt "pack-prompt-unlisted" Warning "A pack contains a prompt that its manifest does not list"
    CB204 ArchiveRefused "archive-refused" Error "An archive holds something that Cuebook will not unpack"
    CB205 PackNotFound "pack-not-found" Error "No installed pack has this id"
    CB206 PackExists "pack-exists" Error "A pack of this id is installed already"
    CB207 ApprovalRequired "approval-required" Error "A pack brings code that nobody has approved"
    CB208 ConfirmationNeeded "confirmation-needed" Error "A step needs a yes and there is nobody to ask"
    CB209 BadApprovals "bad-approvals-file" Error "A file of approvals is invalid"
    CB210 BadOverride "bad-override" Error "An override file cannot be understood"
    CB211 StaleOverride "stale-override" Warning "An override was made for another text than there is now"
    CB220 Unsigned "unsigned-item" Error "An item has no signature"
    CB221 ContentChanged "content-changed" Error "An item was changed after it was signed"
    CB222 ItemMoved "item-moved" Error "An item was signed for another place than the one it lies in"
    CB223 UntrustedKey "untrusted-key" Error "An item was signed with a key that nobody here trusts"
    CB224 ForgedSignature "forged-signature" Error "A signature was not made with the key that it names"
    CB225 BadSignature "bad-signature" Error "A signature cannot be understood"
    CB226 NarrowSignature "narrow-signature" Error "The signature of a directive covers only a part of its file"
    CB227 BadKey "bad-key" Error "A signing key is missing or cannot be used"
    CB228 BadTrust "bad-trust" Error "A file of the trust store cannot be understood"
    CB229 LockMismatch "lock-mismatch" Error "A chain is not the one that a lockfile pins"
    CB230 BadLockfile "bad-lockfile" Error "A lockfile cannot be understood"
    CB231 GrantNeeded "grant-needed" Error "A project asks for a power that its user has not granted"
    CB232 BadGrants "bad-grants-file" Error "A file of grants is invalid"
    CB237 UnboundSignature "unbound-signature" Error "A signature does not say which item it is for"
    CB238 OlderVersion "older-version" Error "An item is older than a version of it that was used before"
    CB301 PythonSyntax "python-syntax" Error "prompt.py is not valid Python"
    CB302 NotLiteral "not-a-literal" Error "A definition in prompt.py is computed instead of written out"
    CB303 BadDefinition "bad-definition" Error "A definition in prompt.py has the wrong shape"
    CB304 TemplateSyntax "template-syntax" Error "A template is not valid"
    CB305 MissingTemplate "missing-template" Error "The template that METADATA names does not exist"
    CB306 MissingInclude "missing-include" Error "An included, imported or extended template does not exist"
    CB307 IncludeCycle "include-cycle" Error "Templates include or extend each other in a circle"
    CB308 MissingParent "missing-parent" Error "The prompt that METADATA extends does not exist"
    CB309 ParentCycle "parent-cycle" Error "Prompts extend each other in a circle"
    CB310 UnknownBlock "unknown-block" Warning "A block overrides nothing, because no parent has it"
    CB311 ByteOrderMark "byte-order-mark" Warning "A file begins with a byte-order mark"
    CB312 CarriageReturns "carriage-returns" Note "A file has Windows line ends"
    CB313 IdMismatch "id-mismatch" Error "METADATA names another id than the folder"
    CB314 BadDefault "bad-default" Error "A default value does not have its variable's type"
    CB315 UnknownKey "unknown-key" Warning "A definition has a key that Cuebook does not know"
    CB316 UnknownFilter "unknown-filter" Error "A template uses a filter, test or function that does not exist"
    CB317 HookSignature "hook-signature" Error "A hook or a variable provider cannot be called as it must be"
    CB318 BadFrontMatter "bad-front-matter" Error "The front matter of a file is not closed, or is not valid YAML"
    CB319 BadPrompty "bad-prompty" Error "A field of a .prompty file has the wrong shape"
    CB320 PromptyV1 "prompty-v1" Warning "A .prompty file is written in the first version of the format"
    CB321 NotPortable "not-portable" Note "A .prompty template uses more than every Prompty runtime understands"
    CB322 UntrustedEndpoint "untrusted-endpoint" Warning "A prompt chooses the address that its requests are sent to"
    CB323 AlmostMarker "almost-marker" Warning "A line begins like a role marker and is text"
    CB324 ChangedNonce "changed-nonce" Warning "A template changes the nonce of a conversation, image, file or audio input"
    CB325 BadSection "bad-section" Error "A section or a tool of it is not as it must be"
    CB326 BadDirective "bad-directive" Error "A directive cannot be understood"
    CB327 BadKnowledge "bad-knowledge" Error "A piece of knowledge cannot be understood"
    CB328 BadTool "bad-tool" Error "What a tool says of itself cannot be understood"
    CB332 LeftBehind "left-behind" Warning "A prompt that another one includes is more than its text"
    CB336 EmptyTemplate "empty-template" Warning "A template has no text"
    CB337 LanguageFallback "language-fallback" Warning "A prompt has no template in the language that was asked for"
    CB338 KindAsDefault "kind-as-default" Warning "An input has the name of a kind as its default"
    CB401 InvalidVariables "invalid-variables" Error "Required variables are missing, or values have the wrong type"
    CB402 UndeclaredVariable "undeclared-variable" Warning "A template uses a variable that its prompt does not declare"
    CB403 UnusedVariable "unused-variable" Warning "A declared variable is used nowhere"
    CB404 UnknownVariable "unknown-variable" Error "A value was given for a variable that the prompt does not have"
    CB405 HooksUnavailable "hooks-unavailable" Error "The prompt has hooks, and hooks are turned off or cannot run here"
    CB406 ProviderUnavailable "provider-unavailable" Error "The prompt needs a pack's variables, and providers are turned off or cannot run here"
    CB407 BadInput "bad-input" Error "A value on the command line or in a variables file cannot be understood"
    CB408 PythonNotFound "python-not-found" Error "There is no Python that could run hooks"
    CB409 SandboxIncomplete "sandbox-incomplete" Error "This system offers less protection than hooks need"
    CB410 HookFailed "hook-failed" Error "A hook or a variable provider raised an exception"
    CB411 HookReturn "hook-return" Error "A hook or a variable provider returned something else than it must"
    CB412 HookTimeout "hook-timeout" Error "A hook or a variable provider took too long and was stopped"
    CB413 HookOutput "hook-output" Error "A hook or a variable provider returned more than it may"
    CB414 HookDied "hook-died" Error "The process of a hook ended before the hook did"
    CB415 ProviderConflict "provider-conflict" Error "Several packs provide the same namespace and nobody has chosen between them"
    CB416 ProviderSkipped "provider-skipped" Warning "An optional variable provider failed, and the render went on without it"
    CB417 BadWorkspace "bad-workspace" Error "The workspace is not a folder that hooks can be given"
    CB418 EnvNotSet "env-not-set" Error "An environment variable that a file refers to is not set"
    CB419 FileReference "file-reference" Error "A file that a prompt refers to is missing, or lies where it may not be"
    CB501 RenderFailed "render-failed" Error "An operation in the template failed"
    CB502 UndefinedValue "undefined-value" Error "The template needs a value that is not there"
    CB503 OutputTooLarge "output-too-large" Error "The rendered text is longer than the prompt's limit"
    CB504 OutOfFuel "out-of-fuel" Error "The template ran for too long"
    CB505 TooDeep "too-deep" Error "Templates are nested too deeply"
    CB506 ValueTooLarge "value-too-large" Error "A value grew too large while the template ran"
    CB507 UnknownEngine "unknown-engine" Error "Nobody has registered the template engine or parser that a prompt names"
    CB508 StrictViolation "strict-violation" Error "The value of a strict input looks like a role marker"
    CB509 ExpansionRequired "expansion-required" Error "A model wants to see more of a section"
    CB510 DoesNotFit "does-not-fit" Error "A prompt has more tokens than are allowed, and nothing more can make room"
    CB512 LargerThanWindow "larger-than-window" Warning "A prompt is larger than the window of its model"
    CB514 ForgedStructure "forged-structure" Error "A value changed the structure of a prompt"
    CB515 BadCases "bad-cases" Error "A file of test cases cannot be understood"
    CB516 NotCarriedOver "not-carried-over" Warning "Something that a prompt says is lost, or is different, in another notation"
    CB517 CannotConvert "cannot-convert" Error "A prompt says something that another notation has no way to say"
    CB518 WouldOverwrite "would-overwrite" Error "A file that was to be written is there already"
    CB519 GitFailed "git-failed" Error "Git is not there, there is no repository, or it could not be read"
    CB520 UnknownRevision "unknown-revision" Error "A repository has no such revision"
    CB521 NotInRevision "not-in-revision" Error "A revision has no such prompt"
    CB526 ConsentNeeded "consent-needed" Error "An upgrade of a pack changes what you accepted, and needs your consent"
    CB527 NotDriven "not-driven" Error "An attack could not drive an input: every value was refused"
    CB528 ClosedTag "closed-tag" Error "A value can close a tag that surrounds it"
    CB601 BadMessages "bad-messages" Error "The value of a conversation, image, file or audio input cannot be understood"
    CB602 UnknownWire "unknown-wire" Error "No wire format is known by this name"
    CB603 UnsupportedContent "unsupported-content" Error "A provider cannot take something that the prompt says"
    CB604 UnsupportedSchema "unsupported-schema" Error "A provider cannot take a schema that the prompt declares"
    CB605 BadReply "bad-reply" Error "A provider's reply cannot be understood"
    CB606 ProviderFailed "provider-failed" Error "A provider's reply says that it failed"
    CB607 OutputMismatch "output-mismatch" Error "A reply does not hold what the prompt's outputs ask for"
    CB701 ExecutorNotFound "executor-not-found" Error "A tool names an executor that is not there"
    CB702 ChainCycle "chain-cycle" Error "The executors of a tool lead back to it"
    CB703 ChainTooLong "chain-too-long" Error "A tool has too many executors behind it"
    CB704 ChainInvalid "chain-invalid" Error "The parts of a chain do not fit together"
    CB705 BadRuntime "bad-runtime" Error "A runtime cannot be used"
    CB706 CannotStart "cannot-start" Error "A tool's program cannot be started"
    CB707 TimedOut "timed-out" Error "A tool took too long"
    CB708 ToolFailed "tool-failed" Error "A tool failed"
    CB709 OutsideProject "outside-project" Error "A tool was to touch a file outside of the project"
    CB710 BadParameters "bad-parameters" Error "Parameters do not fit what an item takes"
    CB711 HttpFailed "http-failed" Error "A request of a tool failed"
    CB712 ThreadNotFound "thread-not-found" Error "There is no thread of this name"
    CB713 ThreadBusy "thread-busy" Error "Somebody else runs the thread"
    CB714 BrokenLog "broken-log" Error "The log of a thread was changed from outside"
    CB715 BadLimit "bad-limit" Error "A limit of a thread cannot be understood"
    CB716 LimitReached "limit-reached" Error "A thread reached one of its limits"
    CB717 NotPermitted "not-permitted" Error "A thread wants to do what it may not do"
    CB718 BudgetExhausted "budget-exhausted" Error "A thread has too little money left for a child"
    CB719 BadProviderFile "bad-provider-file" Error "The file of a provider cannot be used"
    CB720 NoModel "no-model" Error "No provider offers the model that was asked for"
    CB721 KeyMissing "key-missing" Error "The key of a provider is not in the environment"
    CB722 NoAnswer "no-answer" Error "A provider did not answer"
    CB723 ReplayMismatch "replay-mismatch" Error "Recorded replies do not fit what is asked"
    CB724 StoreFailed "store-failed" Error "The store of threads cannot be used"
    CB725 OutputsMissing "outputs-missing" Error "A thread ended without the outputs that it was to give"
    CB726 BadHook "bad-hook" Error "A hook of a thread cannot be used"
    CB727 ThreadCancelled "thread-cancelled" Error "A thread was cancelled"
    CB728 CannotResume "cannot-resume" Error "A thread cannot be resumed"
    CB729 Refused "model-refused" Error "A model declined to answer, or a guard declined for it"
    CB730 NoHandler "no-handler" Error "Nobody knows how to run a tool that a prompt offers"
    CB731 FenceUnavailable "fence-unavailable" Error "A tool that a model calls cannot run in the sandbox here"
    CB732 HostRefused "host-refused" Error "A tool that a model calls wants a network host that it may not reach"
    CB735 NotYourLog "not-your-log" Error "The log of a thread was not written with your log key"
    CB736 BadLogKey "bad-log-key" Error "The log key cannot be used"
    CB737 AskAgain "confirm-permissions" Error "Resuming a thread would give it its permissions again"
    CB801 AddressInUse "address-in-use" Error "Another program listens at the address that a server was to listen at"
    CB802 BadAddress "bad-address" Error "A server cannot listen at an address"
    CB803 TokenMissing "token-missing" Error "The token of an MCP server is missing or too weak"
    CB804 BadOrigin "bad-origin" Error "What was given as an origin is none"
    CB805 NotAllowedOverMcp "not-allowed-over-mcp" Error "An MCP client asks for something that the user has not allowed"
    CB806 ProjectNotServed "project-not-served" Error "An MCP client names a project that the server does not serve"
    CB807 ServerBusy "server-busy" Error "An MCP client has too many requests under way"
    CB808 BadAllow "bad-allow" Error "A pattern of what MCP clients may do is invalid"
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
