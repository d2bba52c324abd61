import { readPublicId } from "../../domain/keys/api-key.ts";
import type { Key, KeySecret } from "../../domain/keys/key.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import type { ControlView } from "../../store/control-store.ts";

export interface FoundSecret {
  readonly secret: KeySecret;
  readonly key: Key;
}

/** The secret of a complete API key, with its key; undefined for any other text. */
export async function findSecret(
  { secrets, keys }: ControlView,
  text: string,
  peppers: Peppers,
): Promise<FoundSecret | undefined> {
  const publicId = readPublicId(text);
  const secret = publicId === undefined ? undefined : await secrets.get(publicId);
  const isRight = peppers.match(text, secret?.digest) !== undefined;
  const key = isRight && secret !== undefined ? await keys.get(secret.keyId) : undefined;
  return secret && key && { secret, key };
}
