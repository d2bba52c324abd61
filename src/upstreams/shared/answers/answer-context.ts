import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";

/** The parts of a request that reading its answer depends on. */
export interface AnswerContext {
  /** The caller's names of tools, by the names that were sent, if they differ. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** Tools, by sent name, whose input is the text of their one field `input`. */
  readonly textTools: ReadonlySet<string>;
  /**
   * The tool, by sent name, whose input is the JSON text that the caller wants as the answer;
   * alone, or in addition to the caller's own.
   */
  readonly answerTool: string | undefined;
  /** The caller used the deprecated `functions`, so a call is answered as `function_call`. */
  readonly usesFunctions: boolean;
  /**
   * Stop sequences that were not sent to the model, at which the gateway ends the answer's text.
   */
  readonly stopSequences: readonly string[];
  /** The one stop sequence that was sent; undefined if there are none or several. */
  readonly sentStop: string | undefined;
  /** The service tier that the request names; undefined: none. */
  readonly askedTier?: string | undefined;
  /** The check of a complete answer; undefined if there is none. */
  readonly check: AnswerCheck | undefined;
}

/** The `input` field of a tool that replaces a caller's tool of free text. */
export const textToolField = "input";

/** Describes what is wrong with a whole answer, without quoting it; undefined if nothing is. */
export type AnswerCheck = (text: string) => UpstreamFailureDetails | undefined;

/**
 * The content of a whole answer. A model that calls the caller's tools is not done, even if it also
 * returns an answer.
 */
export function withoutAnswerBesideCalls(
  content: readonly unknown[],
  { answerTool }: AnswerContext,
  calledTool: (block: unknown) => unknown,
): readonly unknown[] {
  const names = content.map(calledTool).filter((name) => name !== undefined);
  if (answerTool === undefined || names.every((name) => name === answerTool)) return content;
  return content.filter((block) => calledTool(block) !== answerTool);
}
