import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { answerCheckOf, type AnswerCheck } from "../answer-format/answer-check.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { stopsOf } from "./encode-inference.ts";
import type { ThoughtSeal } from "../thinking/thought-seal.ts";

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
  /** The seal of the model that answers. */
  readonly thoughtSeal: ThoughtSeal;
  /**
   * Stop sequences that were not sent to the model, at which the gateway ends the answer's text.
   */
  readonly stopSequences: readonly string[];
  /** The check of a complete answer; undefined if there is none. */
  readonly check: AnswerCheck | undefined;
}

/** The context of a request without tools; one with tools adds them. */
export function answerContextOf(request: ChatRequest, model: BedrockModel): AnswerContext {
  return {
    toolNames: new Map(),
    textTools: new Set(),
    answerTool: undefined,
    usesFunctions: (request.functions ?? []).length > 0,
    thoughtSeal: model.thoughtSeal,
    stopSequences: stopsOf(request, model).kept,
    check: model.settings.validateAnswers ? answerCheckOf(request) : undefined,
  };
}

/** The `input` field of a tool that replaces a caller's tool of free text. */
export const textToolField = "input";
