/*
 * Owns the pictures: projection, drawing order, SVG. Called by main, on states that a run leaves after a step. Knows
 * nothing of forces; draws the capsules where the arena says that they are.
 */
#include "render.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include <cerrno>
#include <sys/stat.h>

namespace {

enum { FRAMES = 6, COLUMNS = 3, PANEL = 420, PANEL_HEIGHT = 320, GAP = 12, TITLE = 54, CAPTION = 24 };

struct point2 {
    double x, y, depth;
};

/* An oblique view from the front right and a little above, without perspective: lengths can be compared. */
struct camera {
    double centre_x, centre_y, scale;

    point2 operator()(double x, double y, double z) const
    {
        const double turn = 0.42, raise = 0.30; /* radians about the vertical, and downwards */
        const double right = (x - centre_x) * cos(turn) + (y - centre_y) * sin(turn);
        const double away = -(x - centre_x) * sin(turn) + (y - centre_y) * cos(turn);
        return {PANEL / 2.0 + right * scale, PANEL_HEIGHT - 62 - (z * cos(raise) + away * sin(raise)) * scale,
                away * cos(raise) - z * sin(raise)};
    }
};

/* Darker (below 1) or lighter (above 1) by a factor. */
unsigned shade(unsigned colour, double by)
{
    unsigned out = 0;
    for (int k = 0; k < 3; k++) {
        const double channel = (colour >> (8 * k) & 255) * by;
        out |= static_cast<unsigned>(channel > 255 ? 255 : channel) << (8 * k);
    }
    return out;
}

/* A grid of one half metre on the ground, moving with the camera so that a walking body is seen to move. */
void draw_ground(FILE *f, const camera &see)
{
    fprintf(f, "<rect width='%d' height='%d' fill='#e8eef4'/>\n", PANEL, PANEL_HEIGHT);
    const double horizon = see(see.centre_x, see.centre_y + 4.5, 0).y;
    fprintf(f, "<svg y='%.1f' width='%d' height='%.1f' viewBox='0 %.1f %d %.1f'>\n", horizon, PANEL,
            PANEL_HEIGHT - horizon, horizon, PANEL, PANEL_HEIGHT - horizon);
    fprintf(f, "<rect y='%.1f' width='%d' height='%d' fill='#d9d2c5'/>\n", horizon, PANEL, PANEL_HEIGHT);
    const double x0 = floor(see.centre_x * 2) / 2, y0 = floor(see.centre_y * 2) / 2;
    fprintf(f, "<g stroke='#bdb5a6' stroke-width='1'>\n");
    for (int k = -16; k <= 16; k++) {
        const double d = 0.5 * k;
        const point2 a = see(x0 + d, y0 - 6, 0), b = see(x0 + d, y0 + 9, 0);
        const point2 p = see(x0 - 8, y0 + d, 0), q = see(x0 + 8, y0 + d, 0);
        fprintf(f, "<path d='M%.1f %.1fL%.1f %.1f'/>", a.x, a.y, b.x, b.y);
        fprintf(f, "<path d='M%.1f %.1fL%.1f %.1f'/>\n", p.x, p.y, q.x, q.y);
    }
    /* The line x = 0 is red: what has crossed it went forward. */
    const point2 a = see(0, y0 - 6, 0), b = see(0, y0 + 9, 0);
    fprintf(f, "<path d='M%.1f %.1fL%.1f %.1f' stroke='#c0392b' stroke-width='2'/></g></svg>\n", a.x, a.y, b.x, b.y);
}

struct shape {
    vec3 a, b;
    double radius, depth;
    unsigned colour;
};

void draw_line(FILE *f, point2 a, point2 b, double width, unsigned colour)
{
    fprintf(f, "<path d='M%.1f %.1fL%.1f %.1f' stroke='#%06x' stroke-width='%.1f'/>", a.x, a.y, b.x + 0.01, b.y, colour,
            width);
}

/* The shadow first, straight below; then each capsule from the farthest on: outline, body, light along the top. */
void draw_bodies(FILE *f, const camera &see, std::vector<shape> &shapes)
{
    fprintf(f, "<g stroke-linecap='round' fill='none'>\n<g opacity='0.28'>");
    for (const shape &s : shapes)
        draw_line(f, see(s.a.x, s.a.y, 0), see(s.b.x, s.b.y, 0), 1.7 * s.radius * see.scale, 0x5b5346);
    fprintf(f, "</g>\n");
    std::sort(shapes.begin(), shapes.end(), [](const shape &p, const shape &q) { return p.depth > q.depth; });
    for (const shape &s : shapes) {
        const point2 a = see(s.a.x, s.a.y, s.a.z), b = see(s.b.x, s.b.y, s.b.z);
        const double width = 2 * s.radius * see.scale, lift = 0.3 * s.radius * see.scale;
        const point2 la = {a.x - lift, a.y - lift, 0}, lb = {b.x - lift, b.y - lift, 0};
        draw_line(f, a, b, width + 3, shade(s.colour, 0.35));
        draw_line(f, a, b, width, s.colour);
        draw_line(f, la, lb, width * 0.4, shade(s.colour, 1.18));
        fprintf(f, "\n");
    }
    fprintf(f, "</g>\n");
}

/* One moment of one world. */
struct frame {
    int step;
    std::vector<shape> shapes;
    vec3 root;
};

frame take_frame(const scene &s, const std::vector<char> &state, int world, int step)
{
    const arena a = scene_layout(*s.p, s.worlds, const_cast<char *>(state.data()));
    const camera plain = {0, 0, 1};
    frame f = {step, {}, load3(a.pos, s.worlds, POS, s.p->m.root, 0, world)};

    for (int b = 1; b < s.p->m.bodies; b++) {
        shape one = {{}, {}, static_cast<double>(s.p->m.body[b].radius), 0, s.p->info.colour[b]};
        scene_capsule(s, a, b, world, one.a, one.b);
        one.depth = (plain(one.a.x, one.a.y, one.a.z).depth + plain(one.b.x, one.b.y, one.b.z).depth) / 2;
        f.shapes.push_back(one);
    }
    return f;
}

bool write_picture(const scene &s, std::vector<frame> &frames, const char *directory)
{
    const std::string path = std::string(directory) + "/" + s.p->info.name + ".svg";
    const int rows = (FRAMES + COLUMNS - 1) / COLUMNS, width = COLUMNS * (PANEL + GAP) + GAP;
    const int height = TITLE + rows * (PANEL_HEIGHT + CAPTION + GAP);
    const double step_seconds = static_cast<double>(s.p->m.timestep) * s.p->m.substeps;
    FILE *f = fopen(path.c_str(), "w");

    if (!f) {
        perror(path.c_str());
        return false;
    }
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif'>\n", width,
            height);
    fprintf(f, "<rect width='%d' height='%d' fill='#ffffff'/>\n", width, height);
    fprintf(
        f, "<text x='%d' y='34' font-size='22' fill='#222222'>%s: %d bodies, %d joints, %d contact pair types</text>\n",
        GAP, s.p->info.name, s.p->m.bodies, s.p->m.joints, s.p->m.types);
    for (size_t k = 0; k < frames.size(); k++) {
        const frame &one = frames[k];
        const int x = GAP + static_cast<int>(k) % COLUMNS * (PANEL + GAP);
        const int y = TITLE + static_cast<int>(k) / COLUMNS * (PANEL_HEIGHT + CAPTION + GAP);
        const camera see = {static_cast<double>(one.root.x), static_cast<double>(one.root.y),
                            PANEL / static_cast<double>(s.p->info.view_width)};
        fprintf(f, "<svg x='%d' y='%d' width='%d' height='%d'>\n", x, y, PANEL, PANEL_HEIGHT);
        draw_ground(f, see);
        draw_bodies(f, see, frames[k].shapes);
        fprintf(f, "<rect width='%d' height='%d' fill='none' stroke='#888888'/></svg>\n", PANEL, PANEL_HEIGHT);
        fprintf(f, "<text x='%d' y='%d' font-size='15' fill='#444444'>t = %.2f s, x = %.2f m, height %.2f m</text>\n",
                x + 4, y + PANEL_HEIGHT + 17, one.step * step_seconds, static_cast<double>(one.root.x),
                static_cast<double>(one.root.z));
    }
    fprintf(f, "</svg>\n");
    const bool ok = fclose(f) == 0;
    if (ok)
        printf("picture     %s\n", path.c_str());
    return ok;
}

} // namespace

bool render_pictures(simulation &s, runner &r, int steps, const char *directory)
{
    const size_t plans = std::min(s.scenes.size(), static_cast<size_t>(PLANS));
    std::vector<std::vector<frame>> frames(plans);
    const auto take = [&](int step) {
        for (size_t k = 0; k < plans; k++)
            frames[k].push_back(take_frame(*s.scenes[k], simulation_state(s, *s.scenes[k]), 0, step));
    };
    int taken = 1;

    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        perror(directory);
        return false;
    }
    for (size_t k = 0; k < plans; k++)
        frames[k].push_back(take_frame(*s.scenes[k], s.scenes[k]->image, 0, 0));
    simulation_run(s, r, ORDER_SCENE, steps, "pictures", [&](int step) {
        if (step >= taken * steps / (FRAMES - 1) && taken < FRAMES) {
            take(step);
            taken++;
        }
    });
    bool ok = true;
    for (size_t k = 0; k < plans; k++)
        ok = write_picture(*s.scenes[k], frames[k], directory) && ok;
    return ok;
}
