import { expect, test } from "bun:test";
import { readDocument } from "../../../../test/support/documents.ts";
import { chatFamilies, type ChatFamily, embeddingFamilies, knownFamilies } from "./facts.ts";

const page = readDocument("docs/upstreams/bedrock-models.md");
/** What is said of a family, by its name; its identifiers stand in brackets. */
const said = new Map(
  [...page.matchAll(/^- `([\w-]+)` \([^)]+\):\s+(.*(?:\n {2}.*)*)/gm)].map(
    ([, name, about = ""]) => [name, about.replaceAll(/\s+/g, " ")] as const,
  ),
);

test.each(chatFamilies)("docs/upstreams/bedrock-models.md says what %s can", (family) => {
  expect(said.get(family)).toBe(capabilitiesText(family));
});

test("docs/upstreams/bedrock-models.md has the families of embeddings, and no unknown one", () => {
  expect(new Set(said.keys())).toEqual(new Set([...chatFamilies, ...embeddingFamilies]));
});

/** In the keys of a target's `capabilities`, where it differs from what the page says of all. */
function capabilitiesText(family: ChatFamily): string {
  const has = knownFamilies.capabilitiesOf(family);
  const { tools, toolChoice, temperature, reasoning, maxOutputTokens } = has;
  const beyond = {
    prefill: has.prefill,
    images: has.images,
    single_tool_calls: has.singleToolCalls,
    prompt_caching: has.promptCaching,
    count_tokens: has.countTokens,
    json_schema: has.jsonSchema,
    [`reasoning: ${reasoning}`]: reasoning !== "none",
  };
  const lacking = {
    system: !has.system,
    documents: !has.documents,
    stop: !has.stop,
    tools: !tools,
    streaming_tools: tools && !has.streamingTools,
    tool_choice: tools && !toolChoice,
    named_tool_choice: toolChoice && !has.namedToolChoice,
    temperature: !temperature,
    top_p_with_temperature: temperature && !has.topPWithTemperature,
  };
  const parts = [
    maxOutputTokens === undefined ? "" : `${maxOutputTokens}`,
    listed("with", beyond),
    listed("without", lacking),
  ];
  return `${parts.filter((part) => part !== "").join("; ")}.`;
}

function listed(word: string, flags: Readonly<Record<string, boolean>>): string {
  const keys = Object.entries(flags).flatMap(([key, isListed]) => (isListed ? [`\`${key}\``] : []));
  return keys.length === 0 ? "" : `${word} ${keys.join(", ")}`;
}
