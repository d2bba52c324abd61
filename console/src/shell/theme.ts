import { useState } from "react";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** A cookie, so that the server can send the page with the theme and nothing flickers. */
export function useTheme(): readonly [Theme, (theme: string) => void] {
  const [theme, setTheme] = useState(readTheme);
  const choose = (text: string): void => {
    const chosen = themes.find((each) => each === text) ?? "system";
    // The newer interface for cookies is missing on plain HTTP.
    // oxlint-disable-next-line unicorn/no-document-cookie
    document.cookie = `sluice_theme=${chosen}; path=/; max-age=31536000; samesite=strict`;
    document.documentElement.dataset["theme"] = chosen;
    setTheme(chosen);
  };
  return [theme, choose];
}

function readTheme(): Theme {
  const { theme } = document.documentElement.dataset;
  return themes.find((each) => each === theme) ?? "system";
}
