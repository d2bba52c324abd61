import { switches } from "../verbs/switches.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import { checkLeak } from "./check-leak.ts";
import { endSecret } from "./end-secret.ts";
import { formatLiveSecrets, showIssuedKey, showRotatedKey } from "./show-secret.ts";

export const keys: ResourceSpec = {
  name: "keys",
  example: "key_0123456789abcdef",
  about:
    "A key has a plan, limits and usage. It has one live secret, or two during a rotation. A " +
    "secret is printed once, alone on standard output; only its digest is stored.",
  verbs: [
    {
      name: "create",
      operation: "createKey",
      summary: "Issue a key to an application",
      show: showIssuedKey,
      examples: [
        "keys create --application search --plan standard",
        'keys create --application search --plan standard --name "night batch"',
        "keys create --application search --plan standard --models alpha-sonnet-4 --expires 90d",
        "keys create --application app_0123456789abcdef --plan enterprise " +
          "--requests-per-minute 5000 --tokens-per-minute 10000000",
      ],
    },
    {
      name: "list",
      operation: "listKeys",
      columns: [
        "id",
        "name",
        { title: "SECRETS", of: formatLiveSecrets },
        "application",
        "environment",
        "plan",
        "status",
        "created_at",
        "expires_at",
      ],
      whenEmpty: "No keys found.",
      examples: ["keys list", "keys list --application search --status active"],
    },
    { name: "show", operation: "getKey" },
    {
      name: "update",
      operation: "updateKey",
      texts: { limits: { noneFlag: "plan-limits" } },
      examples: [
        "keys update sk-slc_1a2B3c4D --networks 10.0.0.0/8,192.0.2.7",
        "keys update key_0123456789abcdef --plan pro --plan-limits --expires never",
        "keys update key_0123456789abcdef --provisioned-units 20 --provisioned-pool main",
      ],
    },
    {
      name: "rotate",
      operation: "rotateKey",
      summary: "Give a key a new secret; the old one keeps working for a while",
      conflict: ["compromised", "overlap"],
      show: showRotatedKey,
      hasReceipt: true,
      examples: [
        "keys rotate key_0123456789abcdef",
        "keys rotate sk-slc_1a2B3c4D --overlap 7d > new-key",
        "keys rotate sk-slc_1a2B3c4D --compromised",
      ],
    },
    {
      name: "end-secret",
      operation: "endSecret",
      summary: "End one of two live secrets now, such as the old one after a rotation",
      argument: "secret",
      run: endSecret,
      hasReceipt: true,
      examples: ["keys end-secret sk-slc_1a2B3c4D"],
    },
    ...switches("updateKey", {
      disable: ["Stop a key; it can be enabled again"],
      enable: ["Let a disabled key work again"],
    }),
    {
      name: "revoke",
      operation: "revokeKey",
      done: "is revoked.",
      hasReceipt: true,
    },
    {
      name: "check-leak",
      operation: "reportLeaks",
      summary: "Find keys in a text and end the live ones",
      argument: "[file]",
      only: [],
      options: [["--keep", "Only report; end nothing."]],
      columns: ["hint", "key_id", "application", "outcome"],
      run: checkLeak,
      examples: ["keys check-leak paste.txt --keep", "git log -p | keys check-leak"],
    },
  ],
};
