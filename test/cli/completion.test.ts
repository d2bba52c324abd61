import { expect, test } from "bun:test";
import { runHere } from "./run-here.ts";

async function scriptOf(shell: string): Promise<string> {
  const { exitCode, output } = await runHere(["completion", shell]);
  expect(exitCode).toBe(0);
  return output;
}

/** What bash offers for the last of the words. */
async function offered(...words: string[]): Promise<readonly string[]> {
  const script = `${await scriptOf("bash")}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const shell = Bun.spawn(["bash", "-c", script, "bash", "sluice", ...words], { stdout: "pipe" });
  return (await new Response(shell.stdout).text()).split("\n").filter((word) => word !== "");
}

test("bash completes commands, verbs and options, and nothing that does not exist", async () => {
  expect(await offered("acc")).toEqual(["accounts"]);
  expect(await offered("keys", "r")).toEqual(["rotate", "revoke"]);
  expect(await offered("keys", "create", "--exp")).toEqual(["--expires"]);
  expect(await offered("serve", "--data")).toEqual(["--data-dir", "--data"]);
  expect(await offered("status", "--js")).toEqual(["--json"]);
  expect(await offered("keys", "create", "--data-dir", "--acc")).toEqual(["--account"]);
  expect(await offered("nothing", "")).toEqual([]);
});

test("each shell's script has every command and the options of each verb", async () => {
  const { output } = await runHere(["--help"]);
  const names = [...output.matchAll(/^ {2}([a-z][a-z-]+) {2,}/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(15);
  for (const shell of ["bash", "zsh", "fish"]) {
    const script = await scriptOf(shell);
    for (const name of names) {
      expect([shell, name, script.includes(name)]).toEqual([shell, name, true]);
    }
    expect(script).toContain(shell === "fish" ? "-l application" : "--application");
  }
});

test("a shell that is not known is answered with those that are", async () => {
  const { exitCode, errors } = await runHere(["completion", "tcsh"]);
  expect(exitCode).toBe(2);
  expect(errors).toContain("Allowed choices are bash, zsh, fish");
});
