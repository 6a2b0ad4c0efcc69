// Run from the top of the repository: ci/page/node_modules/.bin/eslint --config ci/page/eslint.config.js FILES
const js = require("@eslint/js");
const globals = require("globals");

module.exports = [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      curly: ["error", "multi-line"],
      eqeqeq: "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "texts of others are set as text" },
        { property: "outerHTML", message: "texts of others are set as text" },
        { property: "insertAdjacentHTML", message: "texts of others are set as text" },
      ],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["tests/**"], languageOptions: { globals: globals.node } },
];
