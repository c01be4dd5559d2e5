;; A plugin as nobody's kit makes it: a component by hand, from the contract alone. It lists one file below the URL that it
;; is given, named by the environment variables and arguments that WASI tells it of, of which there are none.
(component
  (import "svc:plugin/types@0.1.0" (instance $types
    (type $plugin-error (variant
      (case "not-matched") (case "invalid-input" string) (case "login-required" (option string))
      (case "captcha-required" string) (case "not-found" string) (case "gone" string) (case "forbidden" string)
      (case "rate-limited" (option u32)) (case "upstream" u16) (case "network" string) (case "denied" string)
      (case "parse" string) (case "unsupported" string) (case "internal" string)))
    (export "plugin-error" (type (eq $plugin-error)))))
  (alias export $types "plugin-error" (type $error))
  (import "svc:plugin/listing@0.1.0" (instance $listings
    (export "listing" (type $listing (sub resource)))
    (export "entry" (type $entry (sub resource)))
    (export "link" (type $link (sub resource)))
    (export "[method]listing.add"
      (func (param "self" (borrow $listing)) (param "id" string) (param "name" string) (result (own $entry))))
    (export "[method]entry.size" (func (param "self" (borrow $entry)) (param "bytes" u64)))
    (export "[constructor]link" (func (param "url" string) (result (own $link))))
    (export "[method]entry.link" (func (param "self" (borrow $entry)) (param "l" (own $link))))))
  (alias export $listings "listing" (type $listing))
  (alias export $listings "entry" (type $entry))
  (alias export $listings "link" (type $link))
  (import "wasi:cli/environment@0.2.0" (instance $environment
    (export "get-environment" (func (result (list (tuple string string)))))
    (export "get-arguments" (func (result (list string))))))

  (core module $memory-module
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (func (export "realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get $size)))
      (local.get $at)))
  (core instance $memory (instantiate $memory-module))
  (alias core export $memory "memory" (core memory $mem))
  (alias core export $memory "realloc" (core func $realloc))

  (core func $add (canon lower (func $listings "[method]listing.add") (memory $mem)))
  (core func $size (canon lower (func $listings "[method]entry.size")))
  (core func $new-link (canon lower (func $listings "[constructor]link") (memory $mem)))
  (core func $set-link (canon lower (func $listings "[method]entry.link")))
  (core func $drop-listing (canon resource.drop $listing))
  (core func $drop-entry (canon resource.drop $entry))
  (core func $env (canon lower (func $environment "get-environment") (memory $mem) (realloc $realloc)))
  (core func $args (canon lower (func $environment "get-arguments") (memory $mem) (realloc $realloc)))

  (core module $code-module
    (import "memory" "memory" (memory 1))
    (import "host" "add" (func $add (param i32 i32 i32 i32 i32) (result i32)))
    (import "host" "size" (func $size (param i32 i64)))
    (import "host" "new-link" (func $new-link (param i32 i32) (result i32)))
    (import "host" "set-link" (func $set-link (param i32 i32)))
    (import "host" "drop-listing" (func $drop-listing (param i32)))
    (import "host" "drop-entry" (func $drop-entry (param i32)))
    (import "host" "env" (func $env (param i32)))
    (import "host" "args" (func $args (param i32)))
    (data (i32.const 64) "1")
    (data (i32.const 80) "file 0.bin")
    (func (export "resolve")
      (param $url i32) (param $url-length i32) (param i32 i32 i32) (param $out i32) (result i32)
      (local $entry i32)
      ;; The digit becomes how many variables and arguments there are.
      (call $env (i32.const 16))
      (call $args (i32.const 24))
      (i32.store8 (i32.const 85)
        (i32.add (i32.const 48) (i32.add (i32.load (i32.const 20)) (i32.load (i32.const 28)))))
      (local.set $entry
        (call $add (local.get $out) (i32.const 64) (i32.const 1) (i32.const 80) (i32.const 10)))
      (call $size (local.get $entry) (i64.const 42))
      (call $set-link (local.get $entry) (call $new-link (local.get $url) (local.get $url-length)))
      (call $drop-entry (local.get $entry))
      (call $drop-listing (local.get $out))
      (i32.const 0))
    (func (export "more") (param i32 i32 i32 i32) (param $out i32) (result i32)
      (call $drop-listing (local.get $out))
      (i32.const 0))
    (func (export "link-for") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
      ;; The error "unsupported", without a text.
      (i32.store8 (i32.const 32) (i32.const 1))
      (i32.store8 (i32.const 36) (i32.const 12))
      (i32.const 32)))
  (core instance $code (instantiate $code-module
    (with "memory" (instance $memory))
    (with "host" (instance
      (export "add" (func $add)) (export "size" (func $size)) (export "new-link" (func $new-link))
      (export "set-link" (func $set-link)) (export "drop-listing" (func $drop-listing))
      (export "drop-entry" (func $drop-entry)) (export "env" (func $env)) (export "args" (func $args))))))

  (func $resolve
    (param "url" string) (param "password" (option string)) (param "out" (borrow $listing))
    (result (result (error $error)))
    (canon lift (core func $code "resolve") (memory $mem) (realloc $realloc)))
  (func $more
    (param "url" string) (param "token" string) (param "out" (borrow $listing)) (result (result (error $error)))
    (canon lift (core func $code "more") (memory $mem) (realloc $realloc)))
  (func $link-for
    (param "url" string) (param "entry-id" string) (param "variant-id" (option string))
    (result (result (own $link) (error $error)))
    (canon lift (core func $code "link-for") (memory $mem) (realloc $realloc)))
  (instance $resolver
    (export "resolve" (func $resolve)) (export "more" (func $more)) (export "link-for" (func $link-for)))
  (export "svc:plugin/resolver@0.1.0" (instance $resolver)))
