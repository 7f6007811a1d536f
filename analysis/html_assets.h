/* The style and the program of the report's page: analysis/html/report.css and report.js, which CMake turns into
 * arrays. */
#ifndef PL_ANALYSIS_HTML_ASSETS_H
#define PL_ANALYSIS_HTML_ASSETS_H

extern const char pl_html_style[], pl_html_script[];

#endif
