/** The allowed imports of `docs/architecture.md`. The first rule that matches a file applies. */
export interface Rule {
  /** Start of the path of the files to which the rule applies. */
  readonly from: RegExp;
  /** Allowed imports beside its own room. */
  readonly may: readonly RegExp[];
  /** Allowed imports of types. */
  readonly mayAsTypes?: readonly RegExp[];
  /** The rule applies to a single file, which may not import its own room freely. */
  readonly isAlone?: boolean;
}

/** The package of the stand-in provider, and what others may import of it. */
const simulator = /^simulator\//;
const simulatorEntry = /^simulator\/simulator\.ts$/;
/** The web console, which runs in browsers. */
const browser = /^console\//;
const domain = /^src\/domain\//;
const wires = /^src\/wires\//;
const snapshot = /^src\/snapshot\//;
const settings = /^src\/settings\//;
const adapter = /^src\/upstreams\/adapter\.ts$/;
/** The interface of a kind of upstream, and the list of kinds, the only file that names them. */
const kind = /^src\/upstreams\/kind\.ts$/;
const kinds = /^src\/upstreams\/kinds\.ts$/;
/** The interfaces of the store; its folders are backends. */
const store = /^src\/store\/(?:limits\/)?[\w-]+\.ts$/;
/** The data of the control plane, which has one implementation for both databases. */
const controlStore = /^src\/store\/repositories\/control-store\.ts$/;
const storeErrors = /^src\/store\/errors\.ts$/;
/** The chain of the audit, and its signed ends. */
const audit = /^src\/store\/audit\.ts$/;

export const rules: readonly Rule[] = [
  { from: /^src\/domain\//, may: [] },
  { from: /^src\/telemetry\//, may: [domain] },
  { from: simulator, may: [] },
  { from: browser, may: [], mayAsTypes: [/^src\/control\/contract\.ts$/] },
  { from: store, may: [domain, store], mayAsTypes: [controlStore] },
  { from: /^src\/store\/repositories\//, may: [domain, store] },
  { from: /^src\/store\/sqlite\//, may: [domain, store, /^src\/store\/repositories\//] },
  { from: /^src\/store\/postgres\//, may: [domain, store, /^src\/store\/repositories\//] },
  { from: /^src\/store\/(?:limits\/)?\w+\//, may: [domain, store] },
  { from: /^src\/ledger\//, may: [domain, storeErrors], mayAsTypes: [store] },
  { from: /^src\/settings\//, may: [domain] },
  { from: adapter, may: [domain], isAlone: true },
  { from: kind, may: [domain, settings, adapter], isAlone: true },
  { from: kinds, may: [kind, /^src\/upstreams\/\w+\/kind\.ts$/], isAlone: true },
  {
    from: /^src\/upstreams\/\w+\//,
    may: [domain, wires, settings, adapter, kind, /^src\/upstreams\/shared\//],
  },
  { from: /^src\/config\//, may: [domain, settings, kind, kinds] },
  { from: /^src\/snapshot\//, may: [domain], mayAsTypes: [adapter] },
  { from: /^src\/keys\//, may: [domain], mayAsTypes: [snapshot, store] },
  { from: /^src\/routing\//, may: [domain], mayAsTypes: [snapshot] },
  {
    from: /^src\/admission\//,
    may: [domain],
    mayAsTypes: [snapshot, store, /^src\/(routing|keys)\//],
  },
  {
    from: /^src\/upstream-client\//,
    may: [domain],
    mayAsTypes: [snapshot, adapter, /^src\/routing\//],
  },
  {
    from: /^src\/call\//,
    may: [domain, snapshot, /^src\/(admission|routing|keys|upstream-client)\//],
    mayAsTypes: [store, adapter],
  },
  { from: /^src\/edge\//, may: [domain, snapshot] },
  {
    from: /^src\/idempotency\//,
    may: [domain, storeErrors, snapshot, /^src\/edge\//],
    mayAsTypes: [store],
  },
  { from: /^src\/wires\//, may: [domain] },
  { from: /^src\/dialects\//, may: [domain, wires, snapshot, /^src\/(edge|call|idempotency)\//] },
  {
    from: /^src\/control\//,
    may: [domain, storeErrors, audit, /^src\/(edge|idempotency)\//],
    mayAsTypes: [store, controlStore, /^src\/(keys|admission|config)\//],
  },
  {
    from: /^src\/process\//,
    may: [/^src\/(?!cli|upstreams\/\w+\/)/, /^package\.json$/],
  },
  {
    from: /^src\/cli\//,
    may: [/^src\/(?!edge\/(?!listen\.ts)|dialects|upstreams|call)/, simulatorEntry],
  },
  { from: /^src\/(routes|main)\.ts$/, may: [/^src\/(?!upstreams\/\w+\/)/, /^package\.json$/] },
];

const otlp = /^src\/telemetry\/otlp\//;

/** Packages and the files that may import them. */
export const packages: readonly { readonly name: string; readonly in: RegExp }[] = [
  { name: "commander", in: /^src\/cli\// },
  {
    name: "zod",
    in: /^src\/(?:(?:config|control|settings)\/|process\/(?:hand-over|control\/process-pages)|upstreams\/(?:kind\.ts$|\w+\/config[/.]))|^console\/src\/api\/contract\.ts$/,
  },
  { name: "iovalkey", in: /^src\/store\/limits\/valkey\// },
  { name: "ipaddr.js", in: /^src\/(call\/images|control\/sign-in\/guard)\// },
  { name: "openid-client", in: /^src\/control\/sign-in\/sso\// },
  { name: "kysely", in: /^src\/store\/(repositories|sqlite|postgres)\// },
  { name: "pg", in: /^src\/store\/postgres\// },
  { name: "yaml", in: /^src\/config\/text\// },
  {
    name: "@aws-sdk/credential-providers",
    in: /^src\/upstreams\/bedrock\/credentials\/[\w-]+\.ts$/,
  },
  { name: "@opentelemetry/api", in: otlp },
  { name: "@opentelemetry/resources", in: otlp },
  { name: "@opentelemetry/exporter-trace-otlp-proto", in: otlp },
  { name: "@opentelemetry/exporter-metrics-otlp-proto", in: otlp },
  { name: "@opentelemetry/sdk-metrics", in: otlp },
  { name: "react", in: browser },
  { name: "react-dom", in: browser },
  { name: "react-aria-components", in: browser },
  { name: "@tanstack/react-query", in: browser },
  { name: "wouter", in: browser },
  { name: "uplot", in: browser },
  { name: "gpt-tokenizer", in: /^src\/dialects\/embeddings\/decode-tokens-thread\.ts$/ },
];

/** Code that is allowed in one place only. */
export const onlyHere: readonly {
  readonly pattern: RegExp;
  readonly in: RegExp;
  readonly rule: string;
}[] = [
  {
    pattern: /\bprocess\.env\b/,
    in: /^(?:src\/config\/environment\.ts$|console\/)/,
    rule: "only config/environment reads process.env",
  },
  {
    pattern: /\bBun\.serve\(/,
    in: /^(src\/edge\/listen|src\/process\/unix-server|simulator\/.*)\.ts$/,
    rule: "only edge/listen serves callers; processes of a machine ask each other",
  },
  {
    pattern: /\bprocess\.exit\(/,
    in: /^src\/(main|cli\/serve\/control-thread)\.ts$/,
    rule: "only main may end the process, and the control thread itself",
  },
  {
    pattern: /\b(?:kind [!=]== |case )"(?:openai|anthropic|bedrock)"/,
    in: /^(?:src\/upstreams|simulator)\//,
    rule: "facts about a kind belong to its folder",
  },
];
