import type { ThoughtSeal } from "./thinking/thought-seal.ts";
import type { AnswerCheck } from "./answer-format/answer-check.ts";

/** What reading an answer needs to know of the request that it answers. */
export interface AnswerContext {
  /** Names of tools as the caller wrote them, by the names that were sent; equal ones are left out. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** Tools, by sent name, whose input is the text of their one field `input`. */
  readonly textTools: ReadonlySet<string>;
  /**
   * The tool, by sent name, whose input is the JSON text the caller asked for as the answer; alone,
   * or beside the caller's own.
   */
  readonly answerTool: string | undefined;
  /** The caller used the deprecated `functions`; a call is answered as `function_call`. */
  readonly usesFunctions: boolean;
  /** Of the model that answers. */
  readonly thoughtSeal: ThoughtSeal;
  /** Where the text of the answer ends, as far as the model was not told. */
  readonly stopSequences: readonly string[];
  /** Of the text of an answer that ended by itself; undefined where nothing is checked. */
  readonly check?: AnswerCheck | undefined;
}

/** The `input` field of a tool that stands for a caller's tool of free text. */
export const textToolField = "input";
