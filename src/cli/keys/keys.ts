import type { Command } from "../command.ts";
import { deleteVerb, showVerb, switchVerb } from "../resources/entity-verbs.ts";
import { checkLeakVerb } from "./keys-check-leak.ts";
import { createKeyVerb, updateKeyVerb } from "./keys-change.ts";
import { endSecretVerb } from "./keys-end-secret.ts";
import { keyEntity, listKeysVerb } from "./keys-list.ts";
import { rotateKeyVerb } from "./keys-rotate.ts";
import { createResourceCommand } from "../resource-command.ts";

export const keysCommand: Command = createResourceCommand({
  name: "keys",
  summary: "API keys: create, rotate, limit, revoke, check leaks",
  about: `Limits, usage and a plan attach to a key. It has one or two live secrets: two while it is
rotated. A secret is printed once, alone on standard output; only its digest is stored.`,
  verbs: [
    createKeyVerb,
    listKeysVerb,
    showVerb(keyEntity),
    updateKeyVerb,
    rotateKeyVerb,
    endSecretVerb,
    switchVerb(keyEntity, {
      name: "disable",
      summary: "stop a key; it may be enabled again",
      effect: "Gateways refuse it within a second.",
    }),
    switchVerb(keyEntity, {
      name: "enable",
      summary: "let a disabled key work again",
      effect: "Gateways take it again within a second.",
    }),
    deleteVerb(keyEntity, {
      name: "revoke",
      summary: "stop a key for good",
      effect: "Gateways refuse it within a second.",
    }),
    checkLeakVerb,
  ],
});
