import { expect, test } from "bun:test";
import { commandLine } from "./program.ts";

test("a line to run names the files that the command before was given, as a shell reads them", () => {
  expect(commandLine("keys list")).toBe("npx sluice keys list");
  expect(commandLine("keys list", { config: "a.yaml", "data-dir": "/srv/my data's" })).toBe(
    `npx sluice keys list --config a.yaml --data-dir '/srv/my data'\\''s'`,
  );
});
