import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AdminFixture } from "../../test/support/admin-fixture.ts";
import { runHere } from "../../test/cli/run-here.ts";
import { fieldRows } from "../control/openapi/field-rows.ts";
import { columnOf } from "./output/show-reply.ts";
import { commands } from "./command-list.ts";
import { resourceSpecs } from "./resources/resources.ts";
import { wordOf } from "./verbs/fields.ts";
import { verbOf } from "./verbs/verb.ts";

const verbs = resourceSpecs.flatMap(({ name, verbs: all }) =>
  all.map((spec) => ({ title: `${name} ${spec.name}`, verb: verbOf(spec) })),
);

test("every command is listed once", () => {
  const names = commands.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});

test("every operation of the control plane has a command", async () => {
  const typed = new Set(verbs.map(({ verb }) => verb.operation.id));
  await using fixture = new AdminFixture();
  const operations = fixture.operations.map(({ id }) => id);
  // `explain` shows two of them, `list` of each kind what there is to choose from.
  const others = ["getCall", "getRefusal", "getChoices"];
  expect(operations.filter((id) => !typed.has(id))).toEqual(others);
});

test("every field of a request is an option of its verb, or set by it", () => {
  for (const { title, verb } of verbs) {
    const { spec, operation, fields } = verb;
    if (spec.only !== undefined || spec.run !== undefined) continue;
    const names = Object.keys({ ...operation.query?.shape, ...operation.body?.shape });
    const said = [
      "revision",
      "disabled",
      "expires_in_seconds",
      spec.argument,
      ...(spec.without ?? []),
    ];
    const wanted = names.filter((name) => !said.includes(name));
    expect([title, [...new Set(fields.map(({ path }) => path[0]))]]).toEqual([title, wanted]);
  }
});

test("every column of a table is a field of the listed objects", () => {
  for (const { verb } of verbs) {
    const known = fieldRows(verb.operation.answer).map(({ name }) => name);
    for (const column of verb.spec.columns ?? []) {
      const { of } = columnOf(column);
      if (typeof of === "string") expect(known).toContain(`data[].${of}`);
    }
  }
});

/** The modules that these files load at their start; `import()` loads others when they are used. */
function modulesOf(...files: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const walk = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const imports = new Bun.Transpiler({ loader: "ts" }).scanImports(readFileSync(path, "utf8"));
    for (const { path: name, kind } of imports) {
      if (kind !== "import-statement") continue;
      if (name.endsWith(".ts")) walk(join(dirname(path), name));
      else seen.add(name);
    }
  };
  for (const file of files) walk(join(import.meta.dir, file));
  return seen;
}

test("a gateway process loads neither the parser nor the commands of operations", () => {
  const seen = modulesOf("command.ts", "serve/serve.ts");
  expect(seen).toContain(join(import.meta.dir, "serve/load-settings.ts"));
  expect([...seen].filter((name) => /commander|cli\/verbs/.test(name))).toEqual([]);
});

test("help and mistakes load no command, and a command neither configuration nor database", () => {
  const overview = [...modulesOf("run-command-line.ts")];
  expect(overview.filter((name) => /zod|yaml|kysely/.test(name))).toEqual([]);
  expect(overview.filter((name) => /src\/(config|control|store)\//.test(name))).toEqual([]);
  const command = modulesOf("resources/keys.ts", "verbs/verb-command.ts");
  expect(command).toContain("commander");
  expect([...command].filter((name) => /yaml|kysely|src\/upstreams/.test(name))).toEqual([]);
});

test("messages name every field by an existing option or a plain word", () => {
  for (const { title, verb } of verbs) {
    for (const { path, option, flag } of verb.fields) {
      const word = wordOf(path.filter((part) => part !== undefined).join("."));
      const isKnown = word === option.long || flag === null || word.startsWith("the ");
      expect([title, word, isKnown]).toEqual([title, word, true]);
    }
  }
});

test.each([
  ["a value that was forgotten", "keys list --account", "argument missing"],
  [
    "limits and none at once",
    "accounts update Shop --no-limits --requests-per-minute 1 --tokens-per-minute 1",
    "'--no-limits' cannot be used with option '--requests-per-minute",
  ],
  ["a word that is none of the choices", "users list --role king", "operator, account_holder"],
  ["an option without its verb", "accounts --json", "unknown option '--json'"],
  ["nearly an option", "keys list --acount x", "(Did you mean --account?)"],
  ["an option of another program", "keys list --frobnicate", "unknown option '--frobnicate'"],
  ["nearly an option of a service", "serve --confg x", "(Did you mean --config?)"],
])("%s is a mistake of the command line", async (_, line, told) => {
  const { exitCode, output, errors } = await runHere(line.split(" "));
  expect([exitCode, output]).toEqual([2, ""]);
  expect(errors).toContain(told);
});
