import { expect, test } from "bun:test";
import { plain, tableRows } from "../../../../test/support/documents.ts";
import { familyCapabilities } from "./family-capabilities.ts";
import { chatFamilies, embeddingFamilies, type ChatFamily } from "./model-families.ts";

test("docs/upstreams/bedrock.md lists the capabilities of each family", () => {
  const rows = tableRows("docs/upstreams/bedrock.md").map((cells) => cells.map(plain));
  for (const family of chatFamilies) {
    const row = rows.find(([name]) => name === family);
    expect([family, ...(row?.slice(2) ?? [])]).toEqual([family, ...capabilityCells(family)]);
  }
  const documented = rows.map(([name]) => name);
  expect(embeddingFamilies.filter((family) => !documented.includes(family))).toEqual([]);
});

/** In the order of the columns. */
function capabilityCells(family: ChatFamily): string[] {
  const capabilities = familyCapabilities[family];
  const yes = (flag: boolean): string => (flag ? "yes" : "-");
  const { tools, streamingTools, toolChoice, namedToolChoice } = capabilities;
  const { temperature, topP, topPWithTemperature, reasoning, maxOutputTokens } = capabilities;
  return [
    yes(capabilities.system),
    tools ? (streamingTools ? "yes" : "whole answers") : "-",
    toolChoice ? (namedToolChoice ? "yes" : "some tool") : "-",
    yes(capabilities.singleToolCalls),
    temperature && topP ? (topPWithTemperature ? "yes" : "one of them") : "-",
    yes(capabilities.stop),
    yes(capabilities.prefill),
    yes(capabilities.images),
    yes(capabilities.documents),
    yes(capabilities.jsonSchema),
    reasoning === "none" ? "-" : reasoning,
    yes(capabilities.promptCaching),
    yes(capabilities.countTokens),
    maxOutputTokens === undefined ? "-" : String(maxOutputTokens),
  ];
}
