//! One `QuickJS`, for as long as the instance lives, which is one call, or one login.

use std::{arch::wasm32::memory_grow, cell::RefCell};

use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Error, Function, Module, Object, Persistent, Promise, Runtime,
    Value, context::EvalOptions, function::IntoArgs, promise::PromiseState,
};

use crate::{
    bindings::{exports::svc::script::script::Mistake, svc::plugin::types::PluginError},
    host,
};

/// Memory of the script. The host gives an instance 64 MiB unless the plugin asks for another size; what is left is for
/// texts on their way between the two.
const MEMORY_BYTES: usize = 48 * 1024 * 1024;

/// How deep C and JavaScript call each other, measured in the stack that lies in linear memory. The stack that does not
/// lie there is the host's to limit; this one ends first, with an error that scripts can catch.
const STACK_BYTES: usize = 160 * 1024;

/// Garbage of this size is looked for. Most calls end before.
const COLLECT_BYTES: usize = 4 * 1024 * 1024;

/// What scripts find.
const PRELUDE: &str = include_str!("prelude.js");

/// What a script's places are named by.
const SCRIPT: &str = "plugin.js";

thread_local! {
    /// The engine, then with its script; there is one for each instance.
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

struct Engine {
    context: Context,
    /// What the prelude evaluates to.
    prelude: Persistent<Object<'static>>,
}

/// Starts the engine without a script. It is done once, when the runtime is built: what is embedded is the memory that
/// this leaves, and every instance begins with that.
pub(crate) fn start() {
    ENGINE.set(Some(or_give_up(Engine::start())));
}

/// Takes the script; answers with its functions.
pub(crate) fn load(source: String) -> Result<Vec<String>, Mistake> {
    let engine = ENGINE.take().expect("it was started when it was built");
    let loaded = engine.load(source);
    ENGINE.set(Some(engine));
    loaded
}

/// Calls a function of the prelude, which calls the script's, and makes of its answer what the host wants.
pub(crate) fn call<T, A>(
    function: &str,
    arguments: A,
    answered: impl FnOnce(&Value<'_>) -> rquickjs::Result<T>,
) -> Result<T, PluginError>
where
    A: for<'js> IntoArgs<'js>,
{
    let engine = ENGINE.take().expect("the host hands over a script before it calls");
    let answered = engine.context.with(|ctx| {
        let prelude = or_give_up(engine.prelude.clone().restore(&ctx));
        let answer = settle(&ctx, &prelude, || {
            let function: Function<'_> = prelude.get(function)?;
            function.call(arguments)
        });
        match answer.and_then(|answer| answered(&answer)).catch(&ctx) {
            Ok(answer) => Ok(answer),
            Err(error) => Err(or_give_up(described(&prelude, error))),
        }
    });
    // For the next step of a login.
    ENGINE.set(Some(engine));
    answered
}

impl Engine {
    fn start() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(MEMORY_BYTES);
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_gc_threshold(COLLECT_BYTES);
        let context = Context::full(&runtime)?;
        let (prelude, rejected) = context.with(|ctx| {
            let mut options = EvalOptions::default();
            options.filename = Some("svc.js".to_owned());
            let prelude: Function<'_> = ctx.eval_with_options(PRELUDE, options)?;
            let prelude: Object<'_> = prelude.call((host::functions(&ctx)?,))?;
            let rejected: Function<'_> = prelude.get("rejected")?;
            Ok::<_, Error>((Persistent::save(&ctx, prelude), Persistent::save(&ctx, rejected)))
        })?;
        watch_rejections(&runtime, rejected);
        runtime.run_gc();
        Ok(Self { context, prelude })
    }

    fn load(&self, source: String) -> Result<Vec<String>, Mistake> {
        self.context.with(|ctx| {
            let prelude = or_give_up(self.prelude.clone().restore(&ctx));
            let loaded = load_module(&ctx, &prelude, source).catch(&ctx);
            loaded.map_err(|error| mistake(&error))
        })
    }
}

/// Tells the prelude of rejections that nobody handles, and of those that somebody does after all.
fn watch_rejections(runtime: &Runtime, rejected: Persistent<Function<'static>>) {
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
        let told = rejected
            .clone()
            .restore(&ctx)
            .and_then(|rejected| rejected.call::<_, ()>((promise, reason, is_handled)));
        or_give_up(told);
    })));
}

fn load_module<'js>(ctx: &Ctx<'js>, prelude: &Object<'js>, source: String) -> rquickjs::Result<Vec<String>> {
    let (module, evaluated) = Module::declare(ctx.clone(), SCRIPT, source)?.eval()?;
    settle(ctx, prelude, || Ok(evaluated))?;
    let take: Function<'_> = prelude.get("take")?;
    take.call((module.namespace()?,))
}

/// Runs jobs, and sends what they ask for, until the promise is settled.
fn settle<'js>(
    ctx: &Ctx<'js>,
    prelude: &Object<'js>,
    begin: impl FnOnce() -> rquickjs::Result<Promise<'js>>,
) -> rquickjs::Result<Value<'js>> {
    let promise = begin()?;
    let flush: Function<'_> = prelude.get("flush")?;
    loop {
        while ctx.execute_pending_job() {}
        let has_sent: bool = flush.call(())?;
        if !has_sent {
            break;
        }
    }
    if let PromiseState::Pending = promise.state() {
        return Err(rquickjs::Exception::throw_message(
            ctx,
            "it waits for something that never happens",
        ));
    }
    let unhandled: Function<'_> = prelude.get("takeUnhandled")?;
    let unhandled: Vec<Value<'_>> = unhandled.call(())?;
    let answer = promise.finish()?;
    match unhandled.into_iter().next() {
        Some(reason) => Err(ctx.throw(reason)),
        None => Ok(answer),
    }
}

/// What the host is told of whatever was thrown.
fn described<'js>(prelude: &Object<'js>, error: CaughtError<'js>) -> rquickjs::Result<PluginError> {
    give_up_without_memory(&error);
    let thrown = match error {
        CaughtError::Exception(exception) => exception.into_object().into_value(),
        CaughtError::Value(value) => value,
        CaughtError::Error(error) => return Ok(PluginError::Internal(error.to_string())),
    };
    let describe: Function<'_> = prelude.get("describe")?;
    let described: Object<'_> = describe.call((thrown,))?;
    let code: String = described.get("code")?;
    let detail: Value<'_> = described.get("detail")?;
    let text = || -> rquickjs::Result<String> {
        if detail.is_undefined() {
            return Ok(code.clone());
        }
        let string: Function<'_> = prelude.get("string")?;
        string.call((detail.clone(),))
    };
    Ok(match code.as_str() {
        "notMatched" => PluginError::NotMatched,
        "invalidInput" => PluginError::InvalidInput(text()?),
        "loginRequired" if detail.is_undefined() => PluginError::LoginRequired(None),
        "loginRequired" => PluginError::LoginRequired(Some(text()?)),
        "captchaRequired" => PluginError::CaptchaRequired(text()?),
        "notFound" => PluginError::NotFound(text()?),
        "gone" => PluginError::Gone(text()?),
        "forbidden" => PluginError::Forbidden(text()?),
        "rateLimited" => PluginError::RateLimited(number(&detail)),
        "upstream" => PluginError::Upstream(number(&detail).unwrap_or(0)),
        "network" => PluginError::Network(text()?),
        "denied" => PluginError::Denied(text()?),
        "parse" => PluginError::Parse(text()?),
        "unsupported" => PluginError::Unsupported(text()?),
        _ => PluginError::Internal(text()?),
    })
}

/// A count of seconds, or a status; none if it is no such thing.
#[expect(clippy::cast_possible_truncation, reason = "what is too large stays too large")]
fn number<T: TryFrom<i64>>(detail: &Value<'_>) -> Option<T> {
    T::try_from(detail.as_number()?.ceil() as i64).ok()
}

/// Where the script is wrong: the innermost of its own places in the trace.
fn mistake(error: &CaughtError<'_>) -> Mistake {
    give_up_without_memory(error);
    let (message, trace) = match error {
        CaughtError::Exception(exception) => {
            let name: Option<String> = exception.as_object().get("name").ok();
            let message = exception.message().unwrap_or_default();
            let message = name.map_or_else(|| message.clone(), |name| format!("{name}: {message}"));
            (message, exception.stack().unwrap_or_default())
        }
        CaughtError::Value(value) => {
            let text = value.get::<rquickjs::Coerced<String>>().map(|text| text.0);
            (text.unwrap_or_else(|_| "it threw something".to_owned()), String::new())
        }
        CaughtError::Error(error) => (error.to_string(), String::new()),
    };
    let place = trace.split_once(SCRIPT).map_or("", |(_, rest)| rest);
    let mut numbers = place
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty());
    let is_place = place.starts_with(':');
    let mut number = || numbers.next().filter(|_| is_place)?.parse().ok();
    Mistake {
        message,
        line: number(),
        column: number(),
    }
}

/// A script that does not handle that its memory is at an end is over, by the host's limit and not by an error of its
/// own.
fn give_up_without_memory(error: &CaughtError<'_>) {
    let is_without = match error {
        CaughtError::Exception(exception) => exception.message().as_deref() == Some("out of memory"),
        // What is thrown when there is not even the memory for an error.
        CaughtError::Value(value) => value.is_null(),
        CaughtError::Error(_) => false,
    };
    if is_without {
        give_up();
    }
}

/// Only want of memory makes the prelude and the engine themselves fail.
fn or_give_up<T>(result: rquickjs::Result<T>) -> T {
    result.unwrap_or_else(|_| give_up())
}

/// Ends the instance. The host tells a want of memory from a crash by the memory that was refused last.
fn give_up() -> ! {
    /// Half of all that can be addressed: more than any plugin is given.
    const TOO_MANY_PAGES: usize = 0x8000;
    memory_grow(0, TOO_MANY_PAGES);
    std::process::abort()
}
