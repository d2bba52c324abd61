import { createHash } from "node:crypto";

/** A model's thoughts as the caller sees them. */
export interface ShownThoughts {
  readonly model: string;
  /** The shown text; empty if the thoughts are omitted. */
  readonly text: string;
  /** Identifies the real thoughts; a signature begins with it. */
  readonly mark: string;
}

/** The signature by which a model recognises its own thoughts, unchanged. */
export function reasoningSignature({ model, text, mark }: ShownThoughts): string {
  const digest = createHash("sha512").update(`${foundationOf(model)} ${mark} ${text}`);
  return mark + digest.digest("base64");
}

/** Whether a returned signature is this model's, for this text. */
export function isOwnSignature(signature: string, model: string, text: string): boolean {
  const mark = signature.slice(0, markLength);
  return reasoningSignature({ model, text, mark }) === signature;
}

/** Identifies the real thoughts, so that different omitted thoughts have different signatures. */
export function markOfThoughts(thoughts: string): string {
  return createHash("sha256").update(thoughts).digest("base64").slice(0, markLength);
}

/** Characters of base64, for a whole number of bytes. */
const markLength = 12;

/** Thoughts that the caller cannot read either, in base64. */
export function redactedThoughts(model: string, thoughts: string): string {
  const text = "";
  const signature = reasoningSignature({ model, text, mark: markOfThoughts(thoughts) });
  return Buffer.from(signature).toString("base64");
}

export function isOwnRedacted(data: string, model: string): boolean {
  return isOwnSignature(Buffer.from(data, "base64").toString(), model, "");
}

/** The model's id without the prefix of a profile, such as `us.` or `global.`. */
function foundationOf(model: string): string {
  return model.replace(/^(?:[a-z-]+\.)(?=[a-z0-9-]+\.)/, "");
}
