import { createHash } from "node:crypto";

/** What a model thought, as it shows itself to the caller. */
export interface ShownThoughts {
  readonly model: string;
  /** As the caller reads it: nothing where the model leaves its thoughts out. */
  readonly text: string;
  /** Of what the model really thought; one that is read back says it itself. */
  readonly mark: string;
}

/** What a model signs its thoughts with, so that it knows its own again, unchanged. */
export function reasoningSignature({ model, text, mark }: ShownThoughts): string {
  const digest = createHash("sha512").update(`${foundationOf(model)} ${mark} ${text}`);
  return mark + digest.digest("base64");
}

/** Whether a signature that came back is of this model, for this text. */
export function isOwnSignature(signature: string, model: string, text: string): boolean {
  const mark = signature.slice(0, markLength);
  return reasoningSignature({ model, text, mark }) === signature;
}

/** Stands for the thoughts themselves, so that no two thoughts that are left out sign alike. */
export function markOfThoughts(thoughts: string): string {
  return createHash("sha256").update(thoughts).digest("base64").slice(0, markLength);
}

/** Characters: whole bytes of base64. */
const markLength = 12;

/** Thoughts that are hidden even from the caller: base64, as the wire has bytes. */
export function redactedThoughts(model: string, thoughts: string): string {
  const text = "";
  const signature = reasoningSignature({ model, text, mark: markOfThoughts(thoughts) });
  return Buffer.from(signature).toString("base64");
}

export function isOwnRedacted(data: string, model: string): boolean {
  return isOwnSignature(Buffer.from(data, "base64").toString(), model, "");
}

/** One model has several profiles: `us.`, `global.` and the like. */
function foundationOf(model: string): string {
  return model.replace(/^(?:[a-z-]+\.)(?=[a-z0-9-]+\.)/, "");
}
