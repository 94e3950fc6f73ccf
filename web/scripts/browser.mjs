// The chromium for tests and pictures.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

// The first one is preferred, because it draws no windows.
const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
export const browserFile = names.map((name) => `/usr/bin/${name}`).find(existsSync);

/** Starts the browser, or fails with the package to install. */
export async function launch() {
  if (!browserFile) throw new Error("chromium is not installed: apt-get install chromium-headless-shell");
  return chromium.launch({ executablePath: browserFile, args: ["--no-sandbox", "--disable-gpu"] });
}
