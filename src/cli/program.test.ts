import { expect, test } from "bun:test";
import { commandLine, exampleLine } from "./program.ts";

test("a line to run names the files that the command before was given, as a shell reads them", () => {
  expect(commandLine("keys list")).toBe("npx sluice keys list");
  expect(commandLine("keys list", { config: "a.yaml", "data-dir": "/srv/my data's" })).toBe(
    `npx sluice keys list --config a.yaml --data-dir '/srv/my data'\\''s'`,
  );
});

test("an example that reads a pipe begins with the program that writes it", () => {
  expect(exampleLine("git log -p | keys check-leak")).toBe(
    "git log -p | npx sluice keys check-leak",
  );
  expect(exampleLine("usage export > calls.csv")).toBe("npx sluice usage export > calls.csv");
});
