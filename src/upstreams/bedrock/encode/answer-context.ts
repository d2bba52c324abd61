import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { answerCheckOf, type AnswerCheck } from "../answer-format/answer-check.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import { stopsOf } from "./encode-inference.ts";
import type { ThoughtSeal } from "../thinking/thought-seal.ts";

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
  readonly check: AnswerCheck | undefined;
}

/** What a request without tools needs to be answered; one with tools adds them. */
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

/** The `input` field of a tool that stands for a caller's tool of free text. */
export const textToolField = "input";
