import {
  embeddingFamilies,
  familyOf,
  type ModelFamily,
} from "../../upstreams/bedrock/models/model-families.ts";
import type { SchemaProblem } from "../problems/schema-problems.ts";

/** A target of kind `bedrock`, as far as it could be read. */
export interface BedrockTarget {
  readonly path: SchemaProblem["path"];
  /** The provider's identifier. */
  readonly model: string;
  /** Of the alias; undefined when it is wrong. */
  readonly kind: string | undefined;
  /** As the operator wrote it, if at all. */
  readonly family: string | undefined;
}

/** Whether the model's family is known where it must be, and fits the alias. */
export function bedrockTargetProblems(target: BedrockTarget): readonly SchemaProblem[] {
  const { model, kind, family } = target;
  const path = [...target.path, "model"];
  const named = familyOf(model);
  if (named !== undefined) {
    const actual = kindOf(named);
    if (kind === undefined || kind === actual) return [];
    return [{ path, message: `is ${article(actual)} model, but the alias is not of that kind` }];
  }
  if (family !== undefined) return [];
  if (model.startsWith("arn:")) {
    return [{ path, message: "an ARN hides the model: the target needs bedrock.family" }];
  }
  if (kind !== "embedding") return [];
  const message =
    "is not a known embedding model: the target needs bedrock.family, which is one of " +
    embeddingFamilies.join(", ");
  return [{ path, message }];
}

function kindOf(family: ModelFamily): "chat" | "embedding" {
  const families: readonly ModelFamily[] = embeddingFamilies;
  return families.includes(family) ? "embedding" : "chat";
}

function article(kind: "chat" | "embedding"): string {
  return kind === "chat" ? "a chat" : "an embedding";
}
