import { expect, test } from "bun:test";
import { YAML } from "bun";
import { z } from "zod";
import { upstreamFailureKinds } from "../src/domain/errors/failure-kind.ts";
import probes from "../src/upstreams/openai/probes.json" with { type: "json" };
import { readDocument } from "../test/support/documents.ts";

const sections = readDocument("docs/runbook.md").split(/^(?=#+ )/m);
const rule = z.object({
  alert: z.string(),
  annotations: z.object({ summary: z.string(), runbook_url: z.string() }),
});
const { groups } = z
  .object({ groups: z.array(z.object({ rules: z.array(rule) })) })
  .parse(YAML.parse(readDocument("deploy/prometheus/alerts.yaml")));
const alerts = groups.flatMap(({ rules }) => rules);

test("each alert leads to a heading of its own, with its summary; each such heading has an alert", () => {
  const headed = sections.flatMap((section) => /^### (Sluice\w+)\n/.exec(section)?.[1] ?? []);
  expect(headed.toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url).toEndWith(`/docs/runbook.md#${alert.toLowerCase()}`);
    const section = sections.find((each) => each.startsWith(`### ${alert}\n`));
    expect(oneLine(section ?? "")).toContain(
      annotations.summary.replaceAll(/\{\{.*?\}\}B?/g, "..."),
    );
  }
});

/** Texts of `sluice doctor`, `sluice check-config` and a start, as excerpts of the page. */
const excerpts = sections
  .filter((section) => section.startsWith("### `"))
  .flatMap((section) => [...headingOf(section).matchAll(/`([^`]+)`/g)])
  .map(([, excerpt = ""]) => excerpt);

test("each message that an operator gets from the doctor is in a heading", () => {
  const messages = allMessages();
  expect(messages.length).toBeGreaterThan(80);
  expect(messages.filter((message) => !excerpts.some((one) => isIn(one, message)))).toEqual([]);
});

test("each heading quotes a message that an operator gets from the doctor", () => {
  const messages = allMessages();
  expect(excerpts.filter((one) => !messages.some((message) => isIn(one, message)))).toEqual([]);
});

test("the kinds of failure of a target are listed with what to do", () => {
  const section = sections.find((each) => each.startsWith("### SluiceTargetFails\n"));
  const lists = [...(section ?? "").matchAll(/^- ((?:(?:, )?`[a-z-]+`)+):/gm)];
  const listed = lists.flatMap(([, names = ""]) => names.replaceAll("`", "").split(", "));
  expect(listed.toSorted()).toEqual([...upstreamFailureKinds].toSorted());
});

/** By file, what stands before the texts of findings and of the errors that findings quote. */
const sources: readonly (readonly [path: string, before: RegExp])[] = [
  [
    "src/cli/doctor/*.ts",
    /\b(?:warning|failed)\(\s*|const (?:text|missing) =\s*|return (?="is |`cannot)/g,
  ],
  ["src/cli/command.ts", /const problem = /g],
  ["src/cli/client/connect.ts", /^ {2}text:\s*|[?:] (?=`(?:no gateway|The gateway that))/gm],
  ["src/cli/serve/start-messages.ts", /return \(\s*/g],
  ["src/config/problems/warnings.ts", /return \(\s*/g],
  ["src/config/prices/effective-prices.ts", /return \[(?=`)/g],
  ["src/cli/resources/processes.ts", /return (?=`silent)/g],
  ["src/control/platform/process-differences.ts", /const text =\s*|\btext: /g],
  ["src/control/live/overview.ts", /differences\.push\(/g],
  ["src/control/platform/processes.ts", /: \[(?=`\$\{nameOf)/g],
  ["src/config/proxies.ts", /const problem =\s*/g],
  ["src/edge/listen.ts", /new Error\(/g],
  ["src/keys/key-ring.ts", /isStale \? /g],
  ["src/ledger/spool/spool-writer.ts", /const what = /g],
  ["src/process/wiring/open-valkey-limits.ts", /if \(!trust.answers\) return |return (?=`limits)/g],
  ["src/process/why-not-ready.ts", /return (?=`)/g],
  ["src/store/errors.ts", /super\((?=`\$\{setting)/g],
  ["src/store/installation/data-folder.ts", /new Error\((?=`\$\{path\} holds)/g],
  ["src/store/installation/installation.ts", /new WrongDatabase\(path, /g],
  ["src/store/limits/valkey/client.ts", /new ValkeyUnavailable\(\s*/g],
  ["src/store/limits/valkey/problems.ts", /\btext: |case (?="(?:WRONGPASS|NOAUTH|NOPERM)")/g],
  ["src/store/postgres/connection/inspect-server.ts", /\?\? (?="cannot)/g],
  ["src/store/postgres/connection/postgres-trouble.ts", /\bwhat: /g],
  ["src/store/repositories/schema.ts", /new OtherSchema\(\s*/g],
  ["src/store/sqlite/connection/open-database.ts", /new (?:StorageUnavailable|Error)\(/g],
  [
    "src/upstreams/bedrock/models/model-warnings.ts",
    /return \(\s*|return (?=`\$\{name\})|[?:] (?=`reache)/g,
  ],
];

/** What findings quote, apart from texts in their own files. */
const quoted = [
  "config.message",
  "error.message",
  "lost.text",
  "message.slice",
  "reasonOf",
  "text",
];

test("each finding has a text of its own, or one of an error whose texts are known here", () => {
  const code = filesOf("src/cli/doctor/*.ts").map(readDocument).join("\n");
  const calls = [...code.matchAll(/\b(?:warning|failed)\)?\(\s*([^"`\s][\w.]*)/g)];
  const others = new Set(calls.map(([, argument = ""]) => argument));
  expect([...others].toSorted()).toEqual(quoted);
});

function allMessages(): readonly string[] {
  const found = sources.flatMap(([glob, before]) => {
    const messages = filesOf(glob).flatMap((path) => messagesAfter(before, readDocument(path)));
    // A pattern that no longer finds anything would hide messages.
    expect([glob, messages.length > 0]).toEqual([glob, true]);
    return messages;
  });
  const states = found.flatMap((text) => (text === "is ..." ? ["is empty", "is missing"] : [text]));
  return [...states, ...probes.map(({ about }) => about)];
}

function filesOf(glob: string): readonly string[] {
  const found = new Bun.Glob(glob).scanSync(new URL("..", import.meta.url).pathname);
  return [...found].filter((path) => !path.endsWith(".test.ts"));
}

function messagesAfter(before: RegExp, code: string): readonly string[] {
  return [...code.matchAll(before)]
    .flatMap(({ 0: text, index }) => literalsAt(code.slice(index + text.length)))
    .filter((message) => /\w{2}/.test(message));
}

/** A string or template and those that are added to it, once with each text of a condition. */
function literalsAt(code: string): readonly string[] {
  const [literal = ""] =
    /^(?:"[^"\n]*"|`(?:\$\{[^}]*\}|[^`])*`)(?:\s*\+\s*(?:"[^"\n]*"|`(?:\$\{[^}]*\}|[^`])*`))*/.exec(
      code,
    ) ?? [];
  const text = literal.replaceAll(/["`]\s*\+\s*["`]/g, "").slice(1, -1);
  const [condition, one = "", other = ""] = /\$\{[^}]*\? "([^"]*)" : "([^"]*)"\}/.exec(text) ?? [];
  const variants =
    condition === undefined ? [text] : [one, other].map((each) => text.replace(condition, each));
  return variants.map((each) => each.replaceAll(/\$\{[^}]*\}/g, "..."));
}

/** Whether an excerpt, with `...` for what differs, is part of a message. */
function isIn(excerpt: string, message: string): boolean {
  const parts = excerpt.split("...").map((part) => RegExp.escape(part));
  return new RegExp(parts.join(".*"), "s").test(message);
}

function headingOf(section: string): string {
  return section.split("\n", 1)[0] ?? "";
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
