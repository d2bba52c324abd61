import type { JsonObject } from "../../shared/json-fields.ts";
import type { Turn } from "../encode/converse-body.ts";

export interface ReasoningPlan {
  /** For `additionalModelRequestFields`. */
  readonly fields: JsonObject;
  /**
   * Whether the model thinks before it answers. Then its sampling cannot be set, and it may get its
   * earlier thoughts back.
   */
  readonly isThinking: boolean;
  /** Set if the model accepts no cap of its answer. */
  readonly isUncapped?: true;
  /** The effort that is sent, in the model's words. */
  readonly effort?: string;
}

export interface ReasoningCircumstances {
  /** Whether the model must call a tool. */
  readonly isForced: boolean;
  readonly maxTokens: number;
  readonly turns: readonly Turn[];
}
