import { expect, test } from "bun:test";
import { plain, tableRows } from "../../../../test/support/documents.ts";
import { chatFamilies, type ChatFamily, embeddingFamilies, knownFamilies } from "./facts.ts";

test("docs/upstreams/bedrock-models.md lists the capabilities of each family", () => {
  const rows = tableRows("docs/upstreams/bedrock-models.md").map((cells) => cells.map(plain));
  for (const family of chatFamilies) {
    const { family: name, identifiers, ...capabilities } = cellsOf(family, rows);
    expect([name, identifiers === undefined]).toEqual([family, false]);
    expect(capabilities).toEqual(capabilityCells(family));
  }
  const documented = rows.map(([name]) => name);
  expect(embeddingFamilies.filter((family) => !documented.includes(family))).toEqual([]);
});

/** Cells of a family, by the titles of their columns, of all tables that begin with `family`. */
function cellsOf(family: ChatFamily, rows: readonly string[][]): Record<string, string> {
  const cells: Record<string, string> = {};
  let titles: readonly string[] = [];
  for (const row of rows) {
    if (row[0] === "family") titles = row;
    if (row[0] !== family || row.length !== titles.length) continue;
    for (const [at, cell] of row.entries()) cells[titles[at] ?? ""] = cell;
  }
  return cells;
}

/** By the titles of the columns. */
function capabilityCells(family: ChatFamily): Record<string, string> {
  const capabilities = knownFamilies.capabilitiesOf(family);
  const yes = (flag: boolean): string => (flag ? "yes" : "-");
  const { tools, streamingTools, toolChoice, namedToolChoice } = capabilities;
  const { temperature, topP, topPWithTemperature, reasoning, maxOutputTokens } = capabilities;
  return {
    system: yes(capabilities.system),
    tools: tools ? (streamingTools ? "yes" : "whole answers") : "-",
    "forced tools": toolChoice ? (namedToolChoice ? "yes" : "some tool") : "-",
    "one call at a time": yes(capabilities.singleToolCalls),
    "temperature with top_p":
      temperature && topP ? (topPWithTemperature ? "yes" : "one of them") : "-",
    stop: yes(capabilities.stop),
    prefill: yes(capabilities.prefill),
    images: yes(capabilities.images),
    files: yes(capabilities.documents),
    "JSON schema": yes(capabilities.jsonSchema),
    reasoning: reasoning === "none" ? "-" : reasoning,
    caching: yes(capabilities.promptCaching),
    counting: yes(capabilities.countTokens),
    "most output": maxOutputTokens === undefined ? "-" : String(maxOutputTokens),
  };
}
