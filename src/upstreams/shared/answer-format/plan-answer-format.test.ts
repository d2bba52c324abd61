import { expect, test } from "bun:test";
import { chatOf, modelWith } from "../../../../test/bedrock/checked-encode.ts";
import { Adjustments } from "../adjustments.ts";
import { planAnswerFormat } from "./plan-answer-format.ts";

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const request = chatOf({
  messages: [{ role: "user", content: "Rome?" }],
  response_format: { type: "json_schema", json_schema: { name: "city", schema } },
});

/** They have neither schemas of their own nor tools that can be forced. */
test.each(["us.anthropic.claude-sonnet-5-5", "us.meta.llama3-3-70b-instruct-v1:0"])(
  "%s gets the schema in words only if its answer is checked or the operator allows it",
  (identifier) => {
    const plan = (settings: Parameters<typeof modelWith>[1]) => {
      const model = modelWith(identifier, settings);
      const adjustments = new Adjustments(model.settings);
      const format = planAnswerFormat(request, model, adjustments);
      return { kind: format.kind, told: [...adjustments.fields] };
    };
    expect(() => plan({})).toThrow("does not support JSON schemas");
    expect(plan({ validateAnswers: true })).toEqual({ kind: "instruction", told: [] });
    expect(plan({ dropUnsupported: true })).toEqual({
      kind: "instruction",
      told: [["response_format", "instruction"]],
    });
  },
);
