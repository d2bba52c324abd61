import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import type { BedrockModelSettings } from "../settings.ts";
import { chatOf, encodeChecked, modelWith } from "../../../../test/bedrock/checked-encode.ts";

interface GoldenRequest {
  readonly why: string;
  readonly model: string;
  readonly settings?: Partial<BedrockModelSettings>;
  readonly isStreamed?: boolean;
  /** Fields over `{ model, messages: [{ role: "user", content: "hi" }] }`. */
  readonly send: Readonly<Record<string, unknown>>;
  /** The whole body, or the failure. */
  readonly body?: unknown;
  readonly failure?: { readonly kind: string; readonly param: string; readonly says: string };
  /** The adjustments that the caller is informed of. */
  readonly adjusted?: Readonly<Record<string, string | number>>;
  /** The context for reading the answer, without defaults. */
  readonly context?: {
    readonly toolNames?: Readonly<Record<string, string>>;
    readonly textTools?: readonly string[];
    readonly answerTool?: string;
    readonly usesFunctions?: boolean;
    readonly stopSequences?: readonly string[];
  };
}

const folder = `${import.meta.dir}/requests`;

for (const file of (await readdir(folder)).toSorted()) {
  for (const line of (await Bun.file(`${folder}/${file}`).text()).trim().split("\n")) {
    const golden = JSON.parse(line) as GoldenRequest;
    test(`${file}: ${golden.why}`, () => check(golden));
  }
}

function check(golden: GoldenRequest): void {
  const request = chatOf({ model: "alias", ...golden.send });
  const before = structuredClone(request);
  const encode = () =>
    encodeChecked(request, modelWith(golden.model, golden.settings), golden.isStreamed);
  if (golden.failure !== undefined) {
    expect(failureOf(encode)).toEqual(golden.failure);
    return;
  }
  const { body, context, adjusted } = encode();
  expect<unknown>(body).toEqual(golden.body);
  expect(Object.fromEntries(adjusted)).toEqual({ ...golden.adjusted });
  expect<unknown>({
    toolNames: Object.fromEntries(context.toolNames),
    textTools: [...context.textTools],
    answerTool: context.answerTool,
    usesFunctions: context.usesFunctions,
    stopSequences: context.stopSequences,
  }).toEqual({
    toolNames: {},
    textTools: [],
    answerTool: undefined,
    usesFunctions: false,
    stopSequences: [],
    ...golden.context,
  });
  expect(request).toEqual(before);
}

function failureOf(run: () => unknown): GoldenRequest["failure"] {
  try {
    run();
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    const { kind, param = "", message } = error.details;
    return { kind, param, says: message };
  }
  throw new Error("It was encoded, and a failure was expected.");
}
